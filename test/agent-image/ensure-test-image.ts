import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import {
  addBaseLayout,
  addProgram,
  findProgram,
  hasGlibc,
} from '../../dev/images/host-programs.js';
import { hasImage, importImage } from '../../dev/images/import-image.js';
import { Rootfs } from '../../dev/images/rootfs.js';
import { projectRoot } from '../../dev/root.js';

const run = promisify(execFile);

/** The base image where this machine's own programs cannot be copied. */
const BASE_IMAGE = 'node:24-slim';

const INSTALLS_GIT = 'RUN apt-get update && apt-get install --yes --no-install-recommends git';

const SERVER = path.join(projectRoot, 'test', 'agent-image', 'server.mjs');

const INSTRUCTIONS = [
  'ENV PATH=/usr/local/bin:/usr/bin HOME=/home/node NODE_ENV=production',
  'WORKDIR /home/node',
  'USER 1000:1000',
  'EXPOSE 18789',
  'LABEL org.opencontainers.image.version=0.0.0-test',
  'CMD ["node","/opt/server.mjs"]',
];

/**
 * Builds the tests' agent image from Node, git and `server.mjs`; on Linux it holds nothing else.
 *
 * @returns its tag in Docker.
 */
export async function ensureTestImage(docker: Docker): Promise<string> {
  const server = await readFile(SERVER, 'utf8');
  const inputs = JSON.stringify([
    'git over http',
    server,
    INSTRUCTIONS,
    process.version,
    hasGlibc(),
  ]);
  const key = createHash('sha256').update(inputs).digest('hex').slice(0, 12);
  const tag = `agent-platform-test/agent:${key}`;
  if (await hasImage(docker, tag)) return tag;
  if (hasGlibc()) await importFromThisMachine(docker, tag, server);
  else await buildFromBaseImage(docker, tag, server);
  return tag;
}

async function importFromThisMachine(docker: Docker, tag: string, server: string): Promise<void> {
  const folder = path.join(tmpdir(), `agent-test-image-${randomUUID()}`);
  await mkdir(folder);
  try {
    const rootfs = new Rootfs();
    addBaseLayout(rootfs);
    await addProgram(rootfs, process.execPath, '/usr/local/bin/node');
    const git = await findProgram('git');
    if (git !== undefined) await addGit(rootfs, git);
    rootfs.addText('/opt/server.mjs', server);
    const archive = path.join(folder, 'rootfs.tar');
    await rootfs.writeTo(createWriteStream(archive));
    await importImage(docker, archive, tag, INSTRUCTIONS);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Adds git and its helper program for HTTP. */
async function addGit(rootfs: Rootfs, git: string): Promise<void> {
  await addProgram(rootfs, git);
  const { stdout } = await run(git, ['--exec-path'], { timeout: 10_000 });
  const speaks = path.join(stdout.trim(), 'git-remote-http');
  await addProgram(rootfs, speaks, speaks);
}

async function buildFromBaseImage(docker: Docker, tag: string, server: string): Promise<void> {
  const context = pack();
  const dockerfile = [
    `FROM ${BASE_IMAGE}`,
    INSTALLS_GIT,
    'COPY server.mjs /opt/server.mjs',
    ...INSTRUCTIONS,
  ];
  context.entry({ name: 'Dockerfile' }, dockerfile.join('\n'));
  context.entry({ name: 'server.mjs' }, server);
  context.finalize();
  const abortSignal = AbortSignal.timeout(5 * 60_000);
  let output = '';
  for await (const chunk of await docker.buildImage(Readable.from(context), {
    t: tag,
    abortSignal,
  })) {
    output += chunk.toString();
  }
  if (!(await hasImage(docker, tag))) throw new Error(`The test image was not built: ${output}`);
}
