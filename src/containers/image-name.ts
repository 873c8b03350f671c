import type { AgentSettings } from '../agents/settings.js';

/** What Docker takes as a tag. */
export const IMAGE_TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

/** Repository, and the tag or digest after it; a colon before the last slash is that of a port. */
const NAME = /^(.+?)(?::([^:/@]+))?(?:@([^/@]+))?$/;

/** The official image, published for every release under the release's number. */
export const OFFICIAL_RUNTIME_IMAGE = 'ghcr.io/openclaw/openclaw';

/** The image of new agents, and of those that are updated to no version in particular. */
export function runtimeImage(
  settings: Pick<AgentSettings, 'runtimeImage' | 'runtimeVersion'>,
): string {
  return settings.runtimeImage ?? withTag(OFFICIAL_RUNTIME_IMAGE, settings.runtimeVersion);
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
