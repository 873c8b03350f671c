import { createHash } from 'node:crypto';

/** What Docker takes as a tag. */
export const IMAGE_TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

/** Repository, and the tag or digest after it; a colon before the last slash is that of a port. */
const NAME = /^(.+?)(?::([^:/@]+))?(?:@([^/@]+))?$/;

/** The official image, published for every release under the release's number. */
export const OFFICIAL_RUNTIME_IMAGE = 'ghcr.io/openclaw/openclaw';

/**
 * A registry that cannot be there: no name ends in `.invalid` (RFC 2606). Under it stand the names that we
 * give to images on an engine, so that nobody else can publish what Docker then takes for ours.
 */
export const NO_REGISTRY = 'agent-platform.invalid';

/** A release of the runtime that agents may run. */
export interface RuntimeVersion {
  readonly version: string;
  /** Of its image, `sha256:…`. */
  readonly digest: string | undefined;
}

/** What new agents run, and the image of each version that an agent may be updated to. */
export interface RuntimeImageNames {
  readonly usual: string;
  readonly versions: ReadonlyMap<string, string>;
}

/**
 * @param settings.runtimeImage what new agents run; the official image of `runtimeVersion` when left out.
 * @param settings.versions those of the same repository that agents may be updated to.
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

/** The version that an image's name tells: its tag, or else its digest. */
export function versionOf(image: string): string {
  const [, , tag, digest] = NAME.exec(image) ?? [];
  return tag ?? digest ?? 'latest';
}

/** The image of the same repository with another tag. */
export function withTag(image: string, tag: string): string {
  const [, repository = image] = NAME.exec(image) ?? [];
  return `${repository}:${tag}`;
}

/**
 * Whether an image is on the engine or nowhere, because its name says of no registry that it has it. Docker
 * itself would ask its public registry, where such a name can be anybody's.
 */
export function isLocalImage(image: string): boolean {
  const registry = image.includes('/') ? (image.split('/')[0] ?? '') : '';
  return !/[.:]/.test(registry) || /\.invalid(:\d+)?$/.test(registry);
}

/** Whether the name says what is in the image, whoever serves it. */
export const isPinned = (image: string): boolean => /@sha256:[0-9a-f]{64}$/.test(image);

/** The name as Docker lists an image under it after a pull: a digest stands without its tag. */
export function listedName(image: string): string {
  const [, repository = image, tag = 'latest', digest] = NAME.exec(image) ?? [];
  const short = repository.replace(/^docker\.io\/(library\/)?/, '');
  return digest === undefined ? `${short}:${tag}` : `${short}@${digest}`;
}

/** Under what an installation notes that it has pulled an image, beside the name that it pulled. */
export function pulledMark(installation: string, image?: string): { repo: string; tag: string } {
  const name = createHash('sha256').update(image === undefined ? '' : listedName(image));
  return { repo: `${NO_REGISTRY}/pulled-by-${installation}`, tag: name.digest('hex') };
}
