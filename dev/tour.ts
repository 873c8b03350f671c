/** Data about this start that the tour needs. */
export interface TourFacts {
  readonly webUrl: string;
  readonly backendUrl: string;
  /** True if an AI provider is set up, which the agent needs to answer. */
  readonly hasProvider: boolean;
  /** True if a video provider is set up. */
  readonly hasVideos: boolean;
}

/**
 * Returns commands to paste into another terminal, from creating an account to an agent that answers.
 * They need bash or zsh, curl, Node and INTERNAL_API_KEY.
 */
export function tour({ backendUrl, hasProvider, hasVideos, webUrl }: TourFacts): string {
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

# The agents, as an MCP client lists them with an API key
API_KEY=$(web /api/keys -d '{"name": "tour", "scopes": ["agents"]}' | field key)
curl -s "$BACKEND/api/hostmcp/tools" -H "authorization: Bearer $API_KEY" -H 'content-type: application/json' \
  -d '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "agents_list", "arguments": {}}}' | pretty

# An invite code, which invites once
CODE=$(backend /api/invite/generate -d '{"uses": 1}' | field code)
backend /api/invite/validate -d '{"code": "'$CODE'"}'
backend /api/invite/validate -d '{"code": "'$CODE'"}'

# The data feeds, and the first lines of one
web /api/datafeeds
web "/api/datafeeds?feed=hacker-news" | sed -n 1,25p

${hasVideos ? VIDEO : WITHOUT_VIDEO}

# All agents in one graph, and the first steps of the first piece of work
web /api/mission-control/fleet/graph
TRACE_ID=$(web /api/mission-control/fleet/traces | field 'traces.at(-1).id')
web "/api/mission-control/fleet/traces?id=$TRACE_ID" | sed -n 1,40p

# Stop the agent, start it, list its operations, and remove it
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

const VIDEO = `# A video of one second, and its file
VIDEO_ID=$(web /api/generate-video -d '{"prompt": "A sunrise over the sea", "duration": 1}' | field video.id)
until web "/api/generate-video?id=$VIDEO_ID" | grep -qE '"status": "(completed|failed|cancelled)"'; do sleep 2; done
web "/api/generate-video?id=$VIDEO_ID"
curl -s -b $COOKIES "$WEB/api/generate-video/$VIDEO_ID/file" -o sunrise.mp4`;

const WITHOUT_VIDEO = '# To create a video, set up a video provider (README.md)';
