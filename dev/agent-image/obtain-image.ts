import { minimalEnvironment } from '../processes/minimal-environment.js';
import { lastLines, startProcess } from '../processes/process.js';
import { DiskFailure } from '../failure.js';
import { say } from '../report.js';
import { builtProgram, projectRoot } from '../root.js';

/** Environment variables for the image program: settings that it reads, and npm's. */
const OF_THE_IMAGE =
  /^(DOCKER_HOST|CACHE_DIR|AGENT_RUNTIME_VERSION|AGENT_VERSIONS|NODE_ENV|npm_.+)$/i;

interface Told {
  readonly line?: string;
  readonly image?: string;
  /** The reason why no image could be obtained. */
  readonly problem?: string;
  /** The reason why the start cannot continue. */
  readonly failure?: string;
}

/**
 * Returns the image for new agents, pulled or built if missing.
 *
 * @returns undefined when it cannot be obtained; the reason is printed.
 * @throws DiskFailure when there is no room to make it.
 */
export async function obtainAgentImage(
  env: NodeJS.ProcessEnv,
  runDir: string,
): Promise<string | undefined> {
  let image: string | undefined;
  let problem: string | undefined;
  let failure: string | undefined;
  const work = await startProcess({
    name: 'agent-image',
    command: process.execPath,
    args: ['--enable-source-maps', builtProgram('dev', 'agent-image', 'ensure-image.js')],
    env: minimalEnvironment(OF_THE_IMAGE, env),
    cwd: projectRoot,
    runDir,
    ipc: true,
    onMessage: (message) => {
      const told = message as Told; // ensure-image.ts sends no other messages.
      if (told.line !== undefined) say(`  ${told.line}`);
      image ??= told.image;
      problem ??= told.problem;
      failure ??= told.failure;
    },
  });
  await work.ended;
  if (failure !== undefined) throw new DiskFailure(failure);
  if (image === undefined) {
    say(`No image for agents: ${problem ?? lastLines(work.logFile)}`);
    say('Until then no agent can be created: set AGENT_RUNTIME_IMAGE, or restart.');
  }
  return image;
}

/** Puts the image of the egress helpers on the Docker host, or reports why it could not. */
export async function obtainEgressImage(
  env: NodeJS.ProcessEnv,
  runDir: string,
  name: string,
): Promise<void> {
  let isDone = false;
  let problem: string | undefined;
  const work = await startProcess({
    name: 'egress-image',
    command: process.execPath,
    args: ['--enable-source-maps', builtProgram('dev', 'egress-image', 'make-image.js'), name],
    env: minimalEnvironment(OF_THE_IMAGE, env),
    cwd: projectRoot,
    runDir,
    ipc: true,
    onMessage: (message) => {
      const told = message as Told & { readonly done?: boolean }; // make-image.ts sends nothing else
      isDone ||= told.done === true;
      problem ??= told.problem;
    },
  });
  await work.ended;
  if (!isDone)
    say(`No image for the rules of agents' networks: ${problem ?? lastLines(work.logFile)}`);
}
