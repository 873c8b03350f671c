import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { access, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import { ContainerError } from '../containers/container-errors.js';
import type { DockerClient } from '../containers/docker-client.js';
import {
  addBaseLayout,
  addLibraries,
  addProgram,
  findProgram,
  hasGlibc,
} from '../images/host-programs.js';
import { importImage } from '../images/import-image.js';
import { Rootfs } from '../images/rootfs.js';

/** No registry has this name, and containers are made by the image's id. */
const REPOSITORY = 'agent-platform.local/egress-helper';

/** Where this machine's programs do not run on the engine, they come from an image registry. */
const BASE_IMAGE = 'node:24-slim';

/** The variant of `iptables` that needs no lock and no raw sockets; the other's rules stand beside. */
const XTABLES = 'xtables-nft-multi';

/** What of its extensions rules of ours use. */
const EXTENSIONS = ['standard', 'conntrack', 'addrtype', 'tcp', 'udp'].map(
  (name) => `libxt_${name}.so`,
);
const EXTENSIONS_TARGET = '/usr/lib/xtables';

/** Raise this when the way the image is put together changes. */
const RECIPE = 1;

/** Bounds for asking a registry and Debian's mirrors, in milliseconds. */
const BUILD_MS = 5 * 60_000;

const INSTRUCTIONS = [
  `ENV PATH=/usr/local/bin:/usr/bin:/usr/sbin XTABLES_LIBDIR=${EXTENSIONS_TARGET}`,
  'CMD ["node"]',
];

/** The image with which rules of the network are set cannot be had. */
export class HelperImageError extends ContainerError {}

/**
 * The image of the helper containers, made where the engine does not have it: of this machine's own
 * programs, or else by the engine from an image registry.
 *
 * @returns its id.
 * @throws HelperImageError
 */
export async function ensureHelperImage(client: DockerClient): Promise<string> {
  const own = await ownPrograms(client);
  const inputs = own ? [process.version, own.fingerprint] : [BASE_IMAGE];
  const key = createHash('sha256')
    .update(JSON.stringify([RECIPE, INSTRUCTIONS, EXTENSIONS, ...inputs]))
    .digest('hex')
    .slice(0, 12);
  const tag = `${REPOSITORY}:${key}`;
  const there = await idOf(client, tag);
  if (there !== undefined) return there;
  if (own) await importOwnPrograms(client.docker, tag, own);
  else await buildFromRegistry(client.docker, tag);
  const made = await idOf(client, tag);
  if (made === undefined) throw new HelperImageError('The engine did not keep the helper image');
  return made;
}

interface OwnPrograms {
  readonly xtables: string;
  readonly extensions: string;
  readonly fingerprint: string;
}

/** Undefined where this machine lacks them, or they do not run on the engine. */
async function ownPrograms(client: DockerClient): Promise<OwnPrograms | undefined> {
  const xtables = await findProgram(XTABLES);
  if (xtables === undefined || !hasGlibc()) return undefined;
  const { Arch: arch, Os: os } = await client.call((docker) => docker.version());
  const here = { x64: 'amd64', arm64: 'arm64' }[process.arch as string];
  if (os !== 'linux' || arch !== here) return undefined;
  const { size, mtimeMs } = await stat(xtables);
  const multiarch = { x64: 'x86_64', arm64: 'aarch64' }[process.arch as string];
  for (const folder of [`/usr/lib/${multiarch}-linux-gnu`, '/usr/lib64', '/usr/lib', '/lib64']) {
    const extensions = path.join(folder, 'xtables');
    const isThere = await access(path.join(extensions, EXTENSIONS[0] ?? '')).then(
      () => true,
      () => false,
    );
    if (isThere) return { xtables, extensions, fingerprint: `${size}-${mtimeMs}` };
  }
  return undefined;
}

async function importOwnPrograms(docker: Docker, tag: string, own: OwnPrograms): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'agent-platform-helper-'));
  try {
    const rootfs = new Rootfs();
    addBaseLayout(rootfs);
    await addProgram(rootfs, process.execPath, '/usr/local/bin/node');
    await addProgram(rootfs, own.xtables, `/usr/sbin/${XTABLES}`);
    for (const name of EXTENSIONS) {
      const extension = path.join(own.extensions, name);
      await rootfs.addFile(`${EXTENSIONS_TARGET}/${name}`, extension);
      await addLibraries(rootfs, extension);
    }
    const archive = path.join(folder, 'rootfs.tar');
    await rootfs.writeTo(createWriteStream(archive));
    await importImage(docker, archive, tag, INSTRUCTIONS);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function buildFromRegistry(docker: Docker, tag: string): Promise<void> {
  const context = pack();
  const install = 'apt-get install -qy --no-install-recommends iptables';
  const dockerfile = [`FROM ${BASE_IMAGE}`, `RUN apt-get update -q && ${install}`];
  context.entry({ name: 'Dockerfile' }, dockerfile.join('\n'));
  context.finalize();
  const abortSignal = AbortSignal.timeout(BUILD_MS);
  let said = '';
  try {
    const steps = await docker.buildImage(Readable.from(context), { t: tag, abortSignal });
    for await (const step of steps) said = step.toString();
  } catch (error) {
    throw new HelperImageError(
      `There is no ${XTABLES} on this machine that runs on the engine (Debian has it in its package ` +
        `iptables), and no image with it could be built from ${BASE_IMAGE}: ` +
        (error instanceof Error ? error.message : said),
      { cause: error },
    );
  }
}

async function idOf(client: DockerClient, tag: string): Promise<string | undefined> {
  const found = await client.callUnless([404], (docker) => docker.getImage(tag).inspect());
  return found?.Id;
}
