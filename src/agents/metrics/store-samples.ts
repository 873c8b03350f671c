import type { Database } from '../../platform/database/database.js';
import type { Sample } from './agent-meter.js';
import { SUMMED_STEPS } from './window.js';

/** Samples in one transaction. */
const BATCH = 500;

/** Adds samples, and each to the sums of its steps. A sample of a minute that has one changes nothing. */
const STORE = `
  WITH given AS (
    SELECT * FROM jsonb_to_recordset($samples::jsonb) AS s(
      "agentId" text, "userId" text, "cpuPercent" double precision, "memoryBytes" bigint,
      "memoryLimitBytes" bigint, "networkIn" bigint, "networkOut" bigint)
  ), added AS (
    INSERT INTO agent_samples (agent_id, at, user_id, cpu_percent, memory_bytes,
        memory_limit_bytes, network_in, network_out)
      SELECT a.id, $at::timestamptz, a.user_id, "cpuPercent", "memoryBytes", "memoryLimitBytes",
             "networkIn", "networkOut"
        FROM given g JOIN agents a ON a.id = g."agentId" AND a.user_id = g."userId"
       WHERE a.host = $host AND a.desired <> 'deleted' ORDER BY a.id
      ON CONFLICT (agent_id, at) DO NOTHING RETURNING *
  ), summed AS (
    INSERT INTO agent_sample_sums AS s (agent_id, step, at, user_id, samples, cpu_percent,
        memory_bytes, network_in, network_out)
      SELECT agent_id, step, date_bin(make_interval(secs => step), at, 'epoch'::timestamptz),
             user_id, 1, cpu_percent, memory_bytes, network_in, network_out
        FROM added CROSS JOIN unnest(ARRAY[${SUMMED_STEPS.join()}]) AS step
       ORDER BY agent_id, step
      ON CONFLICT (agent_id, step, at) DO UPDATE SET
        samples = s.samples + 1,
        cpu_percent = s.cpu_percent + excluded.cpu_percent,
        memory_bytes = s.memory_bytes + excluded.memory_bytes,
        network_in = s.network_in + excluded.network_in,
        network_out = s.network_out + excluded.network_out
  )
  SELECT count(*)::integer AS stored FROM added`;

/**
 * Stores the samples of a host's agents for one minute; idempotent. Ignores containers without an agent
 * there. @returns how many were stored.
 */
export async function storeSamples(
  database: Database,
  host: string,
  minute: Date,
  samples: readonly Sample[],
): Promise<number> {
  let stored = 0;
  for (let from = 0; from < samples.length; from += BATCH) {
    const [row] = await database.asPlatform().query<{ stored: number }>(STORE, {
      samples: JSON.stringify(samples.slice(from, from + BATCH).map(rounded)),
      at: minute.toISOString(),
      host,
    });
    stored += row?.stored ?? 0;
  }
  return stored;
}

/** Columns of bytes are whole numbers. */
const rounded = (sample: Sample): Sample => ({
  ...sample,
  memoryBytes: Math.round(sample.memoryBytes),
  memoryLimitBytes: Math.round(Math.min(sample.memoryLimitBytes, Number.MAX_SAFE_INTEGER)),
});
