// Which of these techniques, and which of these transitions, stand already.
RETURN
  COLLECT { UNWIND $techniques AS name MATCH (t:Technique {name: name}) RETURN t.name } AS techniques,
  COLLECT {
    UNWIND $transitions AS pair
    MATCH (b:Technique {name: pair[0]})-[:TRANSITION]->(a:Technique {name: pair[1]})
    RETURN pair
  } AS transitions
