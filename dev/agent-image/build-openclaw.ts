import { createHash, randomUUID } from 'node:crypto';
import { access, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { createWriteStream } from 'node:fs';
import path from 'node:path';
import type Docker from 'dockerode';
import { ImageUnavailableError } from '../../src/docker/containers/container-errors.js';
import {
  NO_REGISTRY,
  OFFICIAL_RUNTIME_IMAGE,
  withTag,
} from '../../src/docker/containers/image-name.js';
import { pullImage } from '../../src/docker/containers/runtime-images.js';
import { requireRoom } from '../disk.js';
import { projectRoot } from '../root.js';
import { hasGlibc } from '../images/host-programs.js';
import { hasImage, importImage } from '../images/import-image.js';
import { installRuntime, type RuntimePackages } from './install-runtime.js';
import { placeOfStrangers, Stranger } from './stranger.js';
import { openClawRootfs } from './openclaw-rootfs.js';

/** Milliseconds that the official registry may take to answer before the image is built here. */
const REGISTRY_TIMEOUT_MS = 8_000;

/** Name of the image built here. */
const BUILT_IMAGE = `${NO_REGISTRY}/openclaw`;

/** Bytes of disk for the packages and the archive made of them. */
const NEEDED_BYTES = 2_000_000_000;

/** Version of the build: increase it when the way the image is built changes. */
const RECIPE = 1;

export interface AgentImageOptions {
  readonly docker: Docker;
  /** The OpenClaw release, such as `2026.9.6`. */
  readonly version: string;
  /** The name of the official image, if it has a digest or is not the usual one. */
  readonly official?: string;
  /** Folder that caches the built image for other engines and clones. */
  readonly cacheDir: string;
  /** Called for each step that takes a while. */
  readonly log: (line: string) => void;
}

/**
 * Returns the image that new agents run: the official one if the engine has it or its registry answers,
 * else one built here from npm packages and programs of this machine, without an image registry.
 *
 * @returns the tag of an image on the engine.
 * @throws ImageUnavailableError when it can be neither pulled nor built.
 */
export async function ensureAgentImage(options: AgentImageOptions): Promise<string> {
  const { docker, version, log } = options;
  const official = options.official ?? withTag(OFFICIAL_RUNTIME_IMAGE, version);
  if (await hasImage(docker, official)) return official;
  const recipe = await readRecipe();
  const built = `${BUILT_IMAGE}:${version}-${recipe.key}`;
  if (await hasImage(docker, built)) return built;

  try {
    log(`fetching the agents' image ${official}`);
    await pullImage(docker, official, { answerMs: REGISTRY_TIMEOUT_MS });
    return official;
  } catch (error) {
    if (!(error instanceof ImageUnavailableError)) throw error;
    if (recipe.version !== version || !(await canBuild(docker))) throw error;
    log(
      'the registry does not provide it, so it is built here from npm packages, or read from the cache',
    );
  }
  await importImage(docker, await ensureArchive(options, recipe), built, instructions(version));
  log(`the agents' image ${built} is ready`);
  return built;
}

/** Makes the files of the image of a release in the cache, so that the image can be made without a network. */
export async function cacheAgentImage(options: Omit<AgentImageOptions, 'docker'>): Promise<void> {
  const recipe = await readRecipe();
  if (recipe.version !== options.version || !hasGlibc()) return;
  await ensureArchive(options, recipe);
}

interface Recipe extends RuntimePackages {
  /** Fingerprint of everything that determines the image's content. */
  readonly key: string;
}

async function readRecipe(): Promise<Recipe> {
  const folder = path.join(projectRoot, 'agent-runtime');
  const lock = await readFile(path.join(folder, 'package-lock.json'), 'utf8');
  const { packages } = JSON.parse(lock) as { packages: Record<string, { version: string }> };
  const version = packages['node_modules/openclaw']?.version ?? '';
  const key = createHash('sha256')
    .update(JSON.stringify([RECIPE, process.arch, lock]))
    .digest('hex')
    .slice(0, 12);
  return { folder, version, key };
}

/** Reports whether the engine runs programs of this machine, from which the image is built. */
async function canBuild(docker: Docker): Promise<boolean> {
  const { Arch: arch, Os: os } = await docker.version();
  const same = { x64: 'amd64', arm64: 'arm64' }[process.arch as string] === arch;
  return hasGlibc() && os === 'linux' && same;
}

function instructions(version: string): string[] {
  const command = ['gateway', 'run', '--port', '18789', '--bind', 'lan', '--auth', 'token'];
  return [
    'ENV PATH=/usr/local/bin:/usr/bin HOME=/home/node LANG=C.UTF-8 NODE_ENV=production',
    'WORKDIR /home/node',
    'USER 1000:1000',
    'EXPOSE 18789',
    `LABEL org.opencontainers.image.version=${version} org.opencontainers.image.title=OpenClaw`,
    `CMD ${JSON.stringify(['openclaw', ...command, '--allow-unconfigured'])}`,
  ];
}

/** Returns the image's files as one archive in the cache, and makes a missing archive. */
async function ensureArchive(
  options: Omit<AgentImageOptions, 'docker'>,
  recipe: Recipe,
): Promise<string> {
  const cache = path.join(options.cacheDir, 'agent-image');
  const archive = path.join(cache, `openclaw-${recipe.version}-${recipe.key}.tar`);
  const cached = await access(archive).then(
    () => true,
    () => false,
  );
  if (cached) return archive;
  requireRoom('CACHE_DIR', options.cacheDir, NEEDED_BYTES);
  await mkdir(cache, { recursive: true });
  requireRoom('TMPDIR', placeOfStrangers(cache), NEEDED_BYTES);
  const draft = path.join(cache, `${randomUUID()}.tar`);
  const stranger = await Stranger.make(cache);
  try {
    const installed = await installRuntime(recipe, stranger, options.log);
    await stranger.end();
    options.log('putting the image together');
    const rootfs = await openClawRootfs(installed);
    await rootfs.writeTo(createWriteStream(draft));
    // Renamed when complete: neither a crash nor two concurrent builds leave an incomplete archive.
    await rename(draft, archive);
    return archive;
  } finally {
    await stranger.end();
    await stranger.remove();
    await rm(draft, { force: true });
  }
}
