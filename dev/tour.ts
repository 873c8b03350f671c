/** Data about this start that the tour needs. */
export interface TourFacts {
  readonly webUrl: string;
  readonly backendUrl: string;
  /** True if an AI provider is set up, which the agent needs to answer. */
  readonly hasProvider: boolean;
}

/**
 * Returns commands to paste into another terminal, from creating an account to an agent that answers.
 * They need bash or zsh, curl, Node and INTERNAL_API_KEY.
 */
export function tour({ backendUrl, hasProvider, webUrl }: TourFacts): string {
  return `setopt interactivecomments 2>/dev/null || true   # zsh needs it, bash does not have it
WEB=${webUrl} BACKEND=${backendUrl} COOKIES=$(mktemp)
pretty() { node -e 'const text = require("fs").readFileSync(0, "utf8"); try { console.log(JSON.stringify(JSON.parse(text), null, 2)) } catch { console.log(text || "No answer") }'; }
web() { curl -s -b $COOKIES -c $COOKIES -H 'content-type: application/json' "$WEB$@" | pretty; }
backend() { curl -s -H "authorization: Bearer $INTERNAL_API_KEY" -H 'content-type: application/json' "$BACKEND$@" | pretty; }
field() { node -p "JSON.parse(require('fs').readFileSync(0)).$1"; }

# An account, and a session in the cookie file
web /api/register -d '{"name": "Ada", "email": "ada@example.com", "password": "correct horse battery"}'
web /api/auth/login -d '{"email": "ada@example.com", "password": "correct horse battery"}'
USER_ID=$(web /api/auth/session | field user.id)

# A plan, granted by the operator
backend /api/subscriptions/deploy -d '{"userId": "'$USER_ID'", "plan": "solo"}'

# An agent, once it runs (OpenClaw takes some ten seconds)
AGENT_ID=$(web /api/agents/provision -d '{"name": "my-agent"}' | field agent.id)
until web /api/agents/$AGENT_ID | grep -qE '"status": "(running|error)"'; do sleep 2; done
web /api/agents/$AGENT_ID

# Its Control UI: open this address in a browser, within a minute
web /api/agents/$AGENT_ID/open -X POST

${hasProvider ? ANSWERS : WITHOUT_ANSWERS}

# Stop it, start it, see what was done to it, and take it away
web "/api/agents/$AGENT_ID/stop?wait=60" -X POST
web "/api/agents/$AGENT_ID/start?wait=60" -X POST
web /api/agents/$AGENT_ID/operations
web /api/agents/$AGENT_ID -X DELETE`;
}

const ANSWERS = `# A question to it, and its log
web /api/chat -d '{"agentId": "'$AGENT_ID'", "message": "Who are you?"}'
backend "/api/logs/$AGENT_ID/history?limit=20"

# A file in its workspace, which it reads, what git says of it, its commit, and what has changed since.
# Its first answer makes the repository
web /api/browse/write -d '{"agentId": "'$AGENT_ID'", "path": "notes/today.md", "content": "hello"}'
web /api/chat -d '{"agentId": "'$AGENT_ID'", "message": "What do you read in notes/today.md?"}'
web "/api/browse/git-status?agentId=$AGENT_ID"
web /api/browse/git-sync -d '{"agentId": "'$AGENT_ID'", "message": "notes"}'
web "/api/browse/git-log?agentId=$AGENT_ID&limit=1"
web /api/browse/write -d '{"agentId": "'$AGENT_ID'", "path": "notes/today.md", "content": "goodbye"}'
web "/api/browse/git-diff?agentId=$AGENT_ID"`;

const WITHOUT_ANSWERS = `# Its log, and a file in its workspace. To ask it something, set up an AI provider (README.md)
backend "/api/logs/$AGENT_ID/history?limit=20"
web /api/browse/write -d '{"agentId": "'$AGENT_ID'", "path": "notes/today.md", "content": "hello"}'
web "/api/browse/read?agentId=$AGENT_ID&path=notes/today.md"`;
