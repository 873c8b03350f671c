import { spawn, type ChildProcess } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import type { HelperTask } from '../../src/workspace/helper-protocol.js';
import { until } from '../support/until.js';
import { workspaceHelper } from '../support/workspace-helper.js';
import type { TestWorkspace } from './support.js';

/** A helper as it runs in a container, with its first connection. The test ends it. */
export interface StartedHelper {
  readonly process: ChildProcess;
  readonly line: Socket;
  connected(): Promise<Socket>;
}

/** Starts a helper for a workspace. */
export async function startHelper(at: TestWorkspace): Promise<StartedHelper> {
  const socket = path.join(at.around, 'helper.sock');
  const task: HelperTask = {
    volume: at.around,
    within: ['work'],
    views: at.views,
    idleMs: 600_000,
    socket,
  };
  const program = ['-e', await workspaceHelper(), JSON.stringify(task)];
  const helper = spawn(process.execPath, program, { stdio: 'inherit' });
  try {
    return {
      process: helper,
      line: await connectedTo(socket),
      connected: () => connectedTo(socket),
    };
  } catch (error) {
    helper.kill('SIGKILL');
    throw error;
  }
}

/** Connects to a helper that is about to listen: its socket file exists before it accepts connections. */
function connectedTo(socket: string): Promise<Socket> {
  return until(async () => {
    const line = connect(socket);
    const isTaken = await new Promise<boolean>((resolve) => {
      line.once('connect', () => resolve(true));
      line.on('error', () => resolve(false)); // the helper may have ended already
    });
    return isTaken && line;
  });
}
