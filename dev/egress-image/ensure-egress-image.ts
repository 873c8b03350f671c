import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { access, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import {
  addBaseLayout,
  addLibraries,
  addProgram,
  findProgram,
  hasGlibc,
} from '../images/host-programs.js';
import { importImage } from '../images/import-image.js';
import { Rootfs } from '../images/rootfs.js';
import { projectRoot } from '../root.js';

/** The variant of `iptables` that needs no lock and no raw sockets. */
const XTABLES = 'xtables-nft-multi';

/** The extensions that the rules of `src/docker/egress/egress-rules.ts` use. */
const EXTENSIONS = ['standard', 'conntrack', 'addrtype', 'tcp', 'udp'].map(
  (name) => `libxt_${name}.so`,
);
const EXTENSIONS_TARGET = '/usr/lib/xtables';

const INSTRUCTIONS = [
  `ENV PATH=/usr/local/bin:/usr/bin:/usr/sbin XTABLES_LIBDIR=${EXTENSIONS_TARGET}`,
  'CMD ["node"]',
];

/** The label by which an image that is out of date is recognized. */
const INPUTS_LABEL = 'agent-platform.egress-helper.inputs';

/** Milliseconds that a build may take with a registry and Debian's mirrors. */
const BUILD_MS = 5 * 60_000;

/** A helper image that could not be made. */
export class EgressImageError extends Error {
  override readonly name = 'EgressImageError';
}

/**
 * Puts the image of the egress helpers on the Docker host: assembled from this machine's own programs, or
 * built from the Dockerfile if those programs do not run there.
 *
 * @returns the image's id, since its name may later refer to another image.
 * @throws EgressImageError
 */
export async function ensureEgressImage(docker: Docker, name: string): Promise<string> {
  const own = await ownPrograms(docker);
  const dockerfile = await readFile(path.join(projectRoot, 'dev/egress-image/Dockerfile'), 'utf8');
  const inputs = createHash('sha256')
    .update(
      own
        ? JSON.stringify([process.version, own.fingerprint, EXTENSIONS, INSTRUCTIONS])
        : dockerfile,
    )
    .digest('hex');
  const [found] = await docker.listImages({ filters: { reference: [name] } });
  if (found?.Labels?.[INPUTS_LABEL] === inputs) return found.Id;
  if (own) await importOwnPrograms(docker, name, inputs, own);
  else await build(docker, name, `${dockerfile}LABEL ${INPUTS_LABEL}=${inputs}\n`);
  const { Id: id } = await docker.getImage(name).inspect();
  return id;
}

interface OwnPrograms {
  readonly xtables: string;
  readonly extensions: string;
  readonly fingerprint: string;
}

/** Returns the programs of this machine; undefined if they are missing or do not run on the Docker host. */
async function ownPrograms(docker: Docker): Promise<OwnPrograms | undefined> {
  const xtables = await findProgram(XTABLES);
  if (xtables === undefined || !hasGlibc()) return undefined;
  const { Arch: arch, Os: os } = await docker.version();
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

async function importOwnPrograms(
  docker: Docker,
  name: string,
  inputs: string,
  own: OwnPrograms,
): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'agent-platform-helper-'));
  try {
    const rootfs = new Rootfs();
    addBaseLayout(rootfs);
    await addProgram(rootfs, process.execPath, '/usr/local/bin/node');
    await addProgram(rootfs, own.xtables, `/usr/sbin/${XTABLES}`);
    for (const each of EXTENSIONS) {
      const extension = path.join(own.extensions, each);
      await rootfs.addFile(`${EXTENSIONS_TARGET}/${each}`, extension);
      await addLibraries(rootfs, extension);
    }
    const archive = path.join(folder, 'rootfs.tar');
    await rootfs.writeTo(createWriteStream(archive));
    const label = `LABEL ${INPUTS_LABEL}=${inputs}`;
    await importImage(docker, archive, name, [...INSTRUCTIONS, label]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function build(docker: Docker, name: string, dockerfile: string): Promise<void> {
  const context = pack();
  context.entry({ name: 'Dockerfile' }, dockerfile);
  context.finalize();
  const abortSignal = AbortSignal.timeout(BUILD_MS);
  let output = '';
  try {
    const steps = await docker.buildImage(Readable.from(context), { t: name, abortSignal });
    for await (const step of steps) output = step.toString();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : output;
    throw new EgressImageError(
      `This machine has no ${XTABLES} that runs on the Docker host (Debian's package iptables), and ` +
        `dev/egress-image/Dockerfile could not be built: ${reason}`,
      { cause },
    );
  }
  const images = await docker.listImages({ filters: { reference: [name] } });
  if (images.length === 0) throw new EgressImageError(`${name} could not be built: ${output}`);
}
