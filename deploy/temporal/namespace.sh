#!/bin/sh
# Makes the namespace and the search attributes of the platform. May run again.
set -eu
name=${TEMPORAL_NAMESPACE:-agents}
if ! temporal operator namespace describe --namespace "$name" >/dev/null 2>&1; then
  temporal operator namespace create --namespace "$name" --retention 7d
fi
# A new namespace is accepted only after some seconds.
for _ in 1 2 3 4 5 6 7 8 9 10; do
  if temporal operator search-attribute create --namespace "$name" --name AgentId --type Keyword \
    --name AgentOwner --type Keyword --name AgentPhase --type Keyword; then
    exit 0
  fi
  sleep 3
done
echo "The search attributes of the namespace $name could not be made." >&2
exit 1
