// The program of a helper container, the only one that accesses an agent's files. It is bundled into
// `workspace-helper.js` without libraries, and listens on a socket in its container.
import { createServer, type Socket } from 'node:net';
import { setMaxListeners } from 'node:events';
import { createInterface } from 'node:readline';
import { ServiceError } from '../lib/errors.js';
import { OutboundClient } from '../platform/outbound/outbound.js';
import { readAllowed } from '../platform/outbound/reachable.js';
import type { HelperAnswer, HelperCall, HelperRequest, HelperTask } from './helper-protocol.js';
import { Folder } from './files/folder.js';
import { removeSkills, type SkillRemoval } from './skills/remove-skills.js';
import { Workspace } from './workspace.js';
import type { WorkspaceRefusal } from './workspace-call.js';

// Trusted: written by the creator of the container.
const task = JSON.parse(process.argv[1] ?? '') as HelperTask;
const { allow, idleMs } = task;
const workspace = new Workspace({
  path: task.volume,
  within: task.within,
  views: task.views,
  ...(allow && { remotes: new OutboundClient({ allow: readAllowed(allow) }) }),
});

/** Milliseconds for the first request to arrive; long enough for a busy machine. */
const FIRST_MS = Math.max(idleMs, 60_000);

/** Requests in flight. */
const inFlight = new Set<AbortController>();
let idle = setTimeout(end, FIRST_MS);
let isEnding = false;

/** Ends the idle helper, and its container with it. */
function end(): void {
  process.exit(0);
}

function rest(ms = idleMs): void {
  clearTimeout(idle);
  if (inFlight.size === 0) idle = setTimeout(end, isEnding ? 0 : ms);
}

/** Aborts requests in flight, then ends: a git lock left in the workspace would block the agent. */
function endSoon(): void {
  isEnding = true;
  for (const ending of inFlight) ending.abort();
  rest();
}

function serve(socket: Socket): void {
  const requests = new Map<number, AbortController>();
  rest(FIRST_MS);
  const leave = () => {
    for (const ending of requests.values()) ending.abort();
  };
  socket.on('error', leave);
  socket.on('close', leave);
  createInterface({ input: socket }).on('line', (line) => {
    // Trusted: only the platform's own processes reach the socket.
    const request = JSON.parse(line) as HelperRequest;
    if ('left' in request) requests.get(request.id)?.abort();
    else void answer(socket, requests, request);
  });
}

async function answer(
  socket: Socket,
  requests: Map<number, AbortController>,
  { call, id }: Extract<HelperRequest, { call: unknown }>,
): Promise<void> {
  const ending = new AbortController();
  setMaxListeners(0, ending.signal);
  requests.set(id, ending);
  inFlight.add(ending);
  rest();
  if (isEnding) ending.abort();
  let answered: HelperAnswer | undefined;
  try {
    answered = { id, value: await perform(call, ending.signal) };
  } catch (error) {
    // Aborted requests get no answer: the closed connection suffices.
    if (!isEnding) answered = { id, refused: refusalOf(error) };
  }
  requests.delete(id);
  const rests = () => {
    inFlight.delete(ending);
    rest();
  };
  if (answered === undefined || socket.destroyed) rests();
  else socket.write(`${JSON.stringify(answered)}\n`, rests);
}

function perform(call: HelperCall, signal: AbortSignal): Promise<unknown> {
  switch (call.what) {
    case 'tree':
      return workspace.tree(call.depth, signal);
    case 'read':
      return workspace.read(call.path);
    case 'write':
      return workspace.write(call.path, call.content, { etag: call.etag, signal });
    case 'append':
      return workspace.append(call.path, call.content, { etag: call.etag, signal });
    case 'memory':
      return workspace.memoryFiles(signal);
    case 'search':
      return workspace.findInMemory(call.query, signal);
    case 'status':
      return workspace.gitStatus(signal);
    case 'diff':
      return workspace.gitDiff(call.path, signal);
    case 'log':
      return workspace.gitLog(call.limit, signal);
    case 'sync':
      return workspace.gitSync(call.message, signal);
    case 'push':
      return workspace.gitPush(call.hash, signal);
    case 'remove-skills':
      return removeFromState(call);
  }
}

/** Removes skills from the runtime's state folder, which contains the workspace. */
async function removeFromState(removal: SkillRemoval): Promise<true> {
  const volume = await Folder.root(task.volume);
  try {
    await volume.within(task.within.slice(0, 1), (state) => removeSkills(state, removal));
    return true;
  } finally {
    await volume.close();
  }
}

function refusalOf(error: unknown): WorkspaceRefusal {
  if (error instanceof ServiceError) {
    const { code, facts, message, status } = error;
    return { status, message, code, facts };
  }
  // Only the code is shown: the message may name files of the workspace.
  const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
  return { status: 500, message: `The workspace is unavailable${code}` };
}

process.on('SIGTERM', endSoon);
process.umask(0o022);
createServer(serve).listen(task.socket);
