// The program of a helper container: it alone touches an agent's files. It is built into one file without
// libraries, `workspace-helper.js`, and listens on a socket within its container.
import { createServer, type Socket } from 'node:net';
import { setMaxListeners } from 'node:events';
import { createInterface } from 'node:readline';
import { ServiceError } from '../errors.js';
import type { HelperAnswer, HelperRequest, HelperTask } from './helper-protocol.js';
import { Workspace } from './workspace.js';
import type { WorkspaceCall, WorkspaceRefusal } from './workspace-call.js';

// As whoever made the container has written it.
const { idleMs, socket: address, volume, within } = JSON.parse(process.argv[1] ?? '') as HelperTask;
const workspace = new Workspace({ path: volume, within, views: '/tmp/views' });

/** Milliseconds in which who has made it finds it, and who has found it asks: machines may be busy. */
const FIRST_MS = Math.max(idleMs, 60_000);

let busy = 0;
let idle = setTimeout(end, FIRST_MS);

/** Nobody has asked for so long. Its container goes with it. */
function end(): void {
  process.exit(0);
}

function rest(ms = idleMs): void {
  clearTimeout(idle);
  if (busy === 0) idle = setTimeout(end, ms);
}

function serve(socket: Socket): void {
  const asked = new Map<number, AbortController>();
  rest(FIRST_MS);
  const leave = () => {
    for (const ending of asked.values()) ending.abort();
  };
  socket.on('error', leave);
  socket.on('close', leave);
  createInterface({ input: socket }).on('line', (line) => {
    // Nobody but the platform's own processes gets at the socket.
    const request = JSON.parse(line) as HelperRequest;
    if ('left' in request) asked.get(request.id)?.abort();
    else void answer(socket, asked, request);
  });
}

async function answer(
  socket: Socket,
  asked: Map<number, AbortController>,
  { call, id }: Extract<HelperRequest, { call: unknown }>,
): Promise<void> {
  const ending = new AbortController();
  setMaxListeners(0, ending.signal);
  asked.set(id, ending);
  busy += 1;
  rest();
  let answered: HelperAnswer;
  try {
    answered = { id, value: await perform(call, ending.signal) };
  } catch (error) {
    answered = { id, refused: refusalOf(error) };
  }
  asked.delete(id);
  busy -= 1;
  rest();
  if (!socket.destroyed) socket.write(`${JSON.stringify(answered)}\n`);
}

function perform(call: WorkspaceCall, signal: AbortSignal): Promise<unknown> {
  switch (call.what) {
    case 'tree':
      return workspace.tree(call.depth, signal);
    case 'read':
      return workspace.read(call.path);
    case 'write':
      return workspace.write(call.path, call.content, signal);
    case 'status':
      return workspace.gitStatus(signal);
    case 'diff':
      return workspace.gitDiff(call.path, signal);
    case 'log':
      return workspace.gitLog(call.limit, signal);
    case 'sync':
      return workspace.gitSync(call.message, signal);
  }
}

function refusalOf(error: unknown): WorkspaceRefusal {
  if (error instanceof ServiceError) {
    return { status: error.status, message: error.message, facts: error.facts };
  }
  // Its message may name what is in the workspace.
  const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
  return { status: 500, message: `The workspace cannot be worked with${code}` };
}

process.umask(0o022);
createServer(serve).listen(address);
