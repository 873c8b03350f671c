import * as z from 'zod';
import { ASPECT_RATIOS, VIDEO_STATUSES } from '../../src/types/videos.js';
import type { Video } from '../../src/videos/videos.js';

/** Maximum seconds of a video. */
const MAX_SECONDS = 10;

export const videoBody = z.strictObject({
  prompt: z.string().trim().min(1).max(2_000),
  duration: z.int().min(1).max(MAX_SECONDS).describe('Seconds').optional(),
  aspectRatio: z.enum(ASPECT_RATIOS).optional(),
  agentId: z.string().min(1).max(64).optional(),
});

export const video = z
  .strictObject({
    id: z.string(),
    agentId: z.string().nullable(),
    prompt: z.string().meta({ examples: ['A sunrise'] }),
    status: z.enum(VIDEO_STATUSES),
    url: z.string().nullable().describe('Path of the file; null without a file'),
    size: z.int().nullable(),
    contentType: z
      .string()
      .nullable()
      .meta({ examples: ['video/mp4'] }),
    error: z.string().nullable(),
    createdAt: z.iso.datetime(),
    completedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Video' });

export function presentVideo(of: Video): z.infer<typeof video> {
  const { agentId, completedAt, contentType, createdAt, error, hasFile, id } = of;
  const { prompt, size, status } = of;
  return {
    id,
    agentId,
    prompt,
    status,
    url: hasFile ? `/api/generate-video/${id}/file` : null,
    size,
    contentType,
    error,
    createdAt: createdAt.toISOString(),
    completedAt: completedAt?.toISOString() ?? null,
  };
}
