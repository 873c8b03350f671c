import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { generateVideoId } from '../../workflows/ids.js';
import type { WorkPlan } from './work-plan.js';
import { stillRuns, type Work, type WorkSite } from './work.js';

/** The reason of a video whose request to the provider may have been lost with the worker. */
const LOST = /answer was lost/;

interface Found {
  readonly video: { readonly id: string; readonly status: string; readonly error: string | null };
}

/** Requests a video: the provider is paid once at most, and the file is whole or absent. */
export async function requestVideo(site: WorkSite, key: string, plan: WorkPlan): Promise<Work> {
  const { mediaRoot, owner, videos } = site;
  const prompt = `A shop window in the rain (${key})`;
  const made = await owner.ask<Found>('POST', '/api/generate-video', key, { prompt });
  const { id } = made.video;
  const read = async () =>
    (await owner.ask<Found>('GET', `/api/generate-video?id=${id}`, '')).video;
  return {
    async end() {
      const { status } = await read();
      return /^(completed|failed|cancelled)$/.test(status) ? status : undefined;
    },
    async problems() {
      const { error, status } = await read();
      const paid = [...videos.predictions.values()].filter(({ input }) => input.prompt === prompt);
      const mayBeLost = plan.part === 'worker' && status === 'failed' && LOST.test(error ?? '');
      const isWell = mayBeLost || (status === 'completed' && paid.length === 1);
      const files = (await readdir(mediaRoot)).filter((name) => name.startsWith(id));
      const wanted = status === 'completed' ? [id] : [];
      const isWhole =
        files.join() === wanted.join() &&
        (wanted.length === 0 || videos.sample.equals(await readFile(path.join(mediaRoot, id))));
      return [
        ...(paid.length > 1 ? [`the provider is paid for ${paid.length} videos`] : []),
        ...(isWell ? [] : [`the video is ${status} (${error}), with ${paid.length} paid`]),
        ...(isWhole ? [] : [`a video that is ${status} has the files ${files.join()}`]),
        ...(await stillRuns(site, generateVideoId(id))),
      ];
    },
  };
}
