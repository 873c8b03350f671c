import { randomUUID } from 'node:crypto';
import type { VideoProviderStandIn } from '../../dev/video/video-provider.js';
import { Database } from '../../src/platform/database/database.js';
import type { SentOnce } from './sent-once.js';

/** Makes reports of videos that the provider works on, each of a video of its own. */
export async function videoReports(
  servingUrl: string,
  provider: VideoProviderStandIn,
  count: number,
): Promise<SentOnce[]> {
  const database = new Database(servingUrl, { maxConnections: 1 });
  const ids = Array.from({ length: count }, () => randomUUID());
  const userId = randomUUID();
  try {
    await database.asPlatform().transaction(async (db) => {
      const email = `${userId}@example.org`;
      await db.User.create({ id: userId, email, name: email, referralCode: userId.toUpperCase() });
      await db.query(
        `INSERT INTO videos (id, user_id, prompt, status, asked_at, prediction_id)
         SELECT id, $userId, 'A sunrise', 'processing', now(), id
           FROM jsonb_array_elements_text($ids::jsonb) AS id`,
        { userId, ids: JSON.stringify(ids) },
      );
    });
  } finally {
    await database.close();
  }
  return ids.map((id) => provider.signed(report(id)));
}

/** Returns the report of a prediction, with all parts that the product reads and more. */
const report = (id: string) => ({
  id,
  model: 'stand-in/video',
  version: 'hidden',
  input: { prompt: 'A sunrise over the sea, in the style of a woodcut', duration: 5 },
  logs: 'Step 1 of 30\n'.repeat(20),
  output: `https://replicate.delivery/xezq/${id}/out.mp4`,
  data_removed: false,
  error: null,
  status: 'succeeded',
  created_at: new Date().toISOString(),
  started_at: new Date().toISOString(),
  completed_at: new Date().toISOString(),
  urls: {
    get: `https://api.replicate.com/v1/predictions/${id}`,
    cancel: `https://api.replicate.com/v1/predictions/${id}/cancel`,
  },
  metrics: { predict_time: 41.2 },
});
