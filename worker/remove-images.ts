import type { Logger } from 'pino';
import type { RuntimeImages } from '../src/docker/containers/runtime-images.js';
import type { Database } from '../src/platform/database/database.js';
import { periodically } from '../src/platform/process/periodically.js';

const INTERVAL_MS = 60 * 60_000;

interface ImageRemoval {
  readonly database: Database;
  readonly docker: { readonly images: Pick<RuntimeImages, 'removeUnused'> };
  readonly usual: string;
  readonly log: Logger;
}

/** Removes pulled images that no agent runs or may roll back to, periodically until the signal aborts. */
export function removeImagesPeriodically(
  removal: ImageRemoval,
  signal: AbortSignal,
): Promise<void> {
  const { log } = removal;
  const failure = 'unused images could not be removed, retrying';
  return periodically({ everyMs: INTERVAL_MS, failure, log, work }, signal);

  async function work(): Promise<void> {
    const removed = await removeImages(removal);
    if (removed.length > 0) log.info({ images: removed }, 'unused images removed');
  }
}

/** Removes unused images, and returns their names. */
export async function removeImages({ database, docker, usual }: ImageRemoval): Promise<string[]> {
  const agents = await database.asPlatform().query<{ image: string }>(
    `SELECT DISTINCT image FROM
       (SELECT image FROM agents WHERE deleted_at IS NULL
         UNION ALL
        SELECT previous_release ->> 'image' FROM agents WHERE deleted_at IS NULL) used
      WHERE image IS NOT NULL`,
  );
  return docker.images.removeUnused(new Set([usual, ...agents.map(({ image }) => image)]));
}
