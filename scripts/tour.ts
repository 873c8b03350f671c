/** What the tour needs to know about this start. */
export interface TourFacts {
  readonly webUrl: string;
  readonly backendUrl: string;
}

/** Commands to paste into another terminal, from an account to an agent that answers. */
export function tour({ webUrl, backendUrl }: TourFacts): string {
  return `  export WEB=${webUrl} BACKEND=${backendUrl} COOKIES=$(mktemp)
  # An account, and a session in the cookie jar
  curl -sS $WEB/api/register -H 'content-type: application/json' -d '{"name":"Ada","email":"ada@example.com","password":"correct horse battery"}'
  curl -sS -c $COOKIES $WEB/api/auth/login -H 'content-type: application/json' -d '{"email":"ada@example.com","password":"correct horse battery"}'
  USER_ID=$(curl -sS -b $COOKIES $WEB/api/auth/session | node -p 'JSON.parse(require("fs").readFileSync(0)).user.id')
  # A plan, granted by the operator
  curl -sS $BACKEND/api/subscriptions/deploy -H "authorization: Bearer $INTERNAL_API_KEY" -H 'content-type: application/json' -d '{"userId":"'$USER_ID'","plan":"solo"}'
  # An agent, a question to it, its log, and its end
  AGENT_ID=$(curl -sS -b $COOKIES $WEB/api/agents/provision -H 'content-type: application/json' -d '{"name":"my-agent"}' | node -p 'JSON.parse(require("fs").readFileSync(0)).agent.id')
  curl -sS -b $COOKIES $WEB/api/agents/$AGENT_ID
  curl -sS -b $COOKIES $WEB/api/chat -H 'content-type: application/json' -d '{"agentId":"'$AGENT_ID'","message":"Who are you?"}'
  curl -sS "$BACKEND/api/logs/$AGENT_ID/history?limit=20" -H "authorization: Bearer $INTERNAL_API_KEY"
  curl -sS -X POST "$BACKEND/api/agents/$AGENT_ID/stop?wait=60" -H "authorization: Bearer $INTERNAL_API_KEY"
  curl -sS -X POST "$BACKEND/api/agents/$AGENT_ID/start?wait=60" -H "authorization: Bearer $INTERNAL_API_KEY"
  curl -sS -X DELETE -b $COOKIES $WEB/api/agents/$AGENT_ID`;
}
