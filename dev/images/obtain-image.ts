import { DiskFailure } from '../failure.js';
import { minimalEnvironment } from '../processes/minimal-environment.js';
import { lastLines, startProcess } from '../processes/process.js';
import { say } from '../report.js';
import { builtProgram, projectRoot } from '../root.js';

/** Environment variables for the image programs: settings that they read, and npm's. */
const OF_THE_IMAGE =
  /^(DOCKER_HOST|CACHE_DIR|AGENT_RUNTIME_VERSION|AGENT_VERSIONS|NODE_ENV|npm_.+)$/i;

/** A program that finds or makes an image on the Docker host. */
export interface ImageProgram {
  /** Name of the program's log. */
  readonly name: string;
  /** Path of the built program. */
  readonly file: readonly string[];
  /** The users of the image, for messages. */
  readonly users: string;
  /** Consequence of a missing image, for messages. */
  readonly unlessObtained?: string;
}

export const AGENT_IMAGE: ImageProgram = {
  name: 'agent-image',
  file: ['dev', 'agent-image', 'ensure-image.js'],
  users: 'agents',
  unlessObtained: 'Until then no agent can be created: set AGENT_RUNTIME_IMAGE, or restart.',
};

export const EGRESS_IMAGE: ImageProgram = {
  name: 'egress-image',
  file: ['dev', 'egress-image', 'make-image.js'],
  users: "the rules of agents' networks",
};

/** A message of an image program; the programs send no others. */
interface ImageMessage {
  /** A line of progress. */
  readonly line?: string;
  readonly image?: string;
  /** The reason why no image could be obtained. */
  readonly problem?: string;
  /** The reason why the start cannot continue. */
  readonly failure?: string;
}

/**
 * Runs a program that finds or makes an image.
 *
 * @returns the image; undefined when it cannot be obtained; the reason is printed.
 * @throws DiskFailure when there is no room to make it.
 */
export async function obtainImage(
  program: ImageProgram,
  env: NodeJS.ProcessEnv,
  runDir: string,
  args: readonly string[] = [],
): Promise<string | undefined> {
  let image: string | undefined;
  let problem: string | undefined;
  let failure: string | undefined;
  const work = await startProcess({
    name: program.name,
    command: process.execPath,
    args: ['--enable-source-maps', builtProgram(...program.file), ...args],
    env: minimalEnvironment(OF_THE_IMAGE, env),
    cwd: projectRoot,
    runDir,
    ipc: true,
    onMessage: (sent) => {
      const message = sent as ImageMessage; // Safe cast: see ImageMessage.
      if (message.line !== undefined) say(`  ${message.line}`);
      image ??= message.image;
      problem ??= message.problem;
      failure ??= message.failure;
    },
  });
  await work.ended;
  if (failure !== undefined) throw new DiskFailure(failure);
  if (image === undefined) {
    say(`No image for ${program.users}: ${problem ?? lastLines(work.logFile)}`);
    if (program.unlessObtained !== undefined) say(program.unlessObtained);
  }
  return image;
}
