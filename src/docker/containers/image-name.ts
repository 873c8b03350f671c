import { createHash } from 'node:crypto';

export const IMAGE_TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

/** Repository, then tag or digest; a colon before the last slash belongs to a port. */
const NAME = /^(.+?)(?::([^:/@]+))?(?:@([^/@]+))?$/;

/** Each release is published with its version as the tag. */
export const OFFICIAL_RUNTIME_IMAGE = 'ghcr.io/openclaw/openclaw';

/**
 * A registry that cannot exist, since `.invalid` is reserved (RFC 2606): no publisher can pass off an image
 * as one that the platform made on an engine.
 */
export const NO_REGISTRY = 'agent-platform.invalid';

export interface RuntimeVersion {
  readonly version: string;
  /** `sha256:…` of the release's image. */
  readonly digest: string | undefined;
}

/** The image of new agents, and the image of each version that agents may be updated to. */
export interface RuntimeImageNames {
  readonly usual: string;
  readonly versions: ReadonlyMap<string, string>;
}

/**
 * Returns the names of the image of new agents, by default the official one of `runtimeVersion`, and of the
 * `versions` in the same repository.
 */
export function runtimeImages({
  runtimeImage,
  runtimeVersion,
  versions,
}: {
  readonly runtimeImage: string | undefined;
  readonly runtimeVersion: string;
  readonly versions: readonly RuntimeVersion[];
}): RuntimeImageNames {
  const [, repository = ''] = NAME.exec(runtimeImage ?? OFFICIAL_RUNTIME_IMAGE) ?? [];
  const named = new Map(
    versions.map(({ version, digest }) => [
      version,
      `${repository}:${version}${digest === undefined ? '' : `@${digest}`}`,
    ]),
  );
  const usual = runtimeImage ?? named.get(runtimeVersion) ?? `${repository}:${runtimeVersion}`;
  return {
    usual,
    versions: new Map([[runtimeVersion, usual], [versionOf(usual), usual], ...named]),
  };
}

/** Returns the version in an image's name: its tag, or else its digest. */
export function versionOf(image: string): string {
  const [, , tag, digest] = NAME.exec(image) ?? [];
  return tag ?? digest ?? 'latest';
}

export function withTag(image: string, tag: string): string {
  const [, repository = image] = NAME.exec(image) ?? [];
  return `${repository}:${tag}`;
}

/**
 * Reports whether an image exists only on the engine, since its name has no registry: Docker would try its
 * public registry, where such a name can belong to any publisher.
 */
export function isLocalImage(image: string): boolean {
  const registry = image.includes('/') ? (image.split('/')[0] ?? '') : '';
  return !/[.:]/.test(registry) || /\.invalid(:\d+)?$/.test(registry);
}

/** Reports whether the name fixes the content, whichever registry serves it. */
export const isPinned = (image: string): boolean => /@sha256:[0-9a-f]{64}$/.test(image);

/** Reports whether the text fixes the content: a name with its digest, or the id of an image on an engine. */
export const isByDigest = (image: string): boolean =>
  isPinned(image) || /^sha256:[0-9a-f]{64}$/.test(image);

/** Returns the name in Docker's list after a pull: a name with a digest loses its tag. */
export function listedName(image: string): string {
  const [, repository = image, tag = 'latest', digest] = NAME.exec(image) ?? [];
  const short = repository.replace(/^docker\.io\/(library\/)?/, '');
  return digest === undefined ? `${short}:${tag}` : `${short}@${digest}`;
}

/** Returns the extra tag by which an installation records that it has pulled an image. */
export function pulledMark(installation: string, image?: string): { repo: string; tag: string } {
  const name = createHash('sha256').update(image === undefined ? '' : listedName(image));
  return { repo: `${NO_REGISTRY}/pulled-by-${installation}`, tag: name.digest('hex') };
}
