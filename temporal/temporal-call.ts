import { isGrpcServiceError, type Client } from '@temporalio/client';
import { UnavailableError } from '../src/lib/errors.js';
import { withDeadline } from './with-deadline.js';

const UNREACHABLE = 'The workflow engine cannot be reached; try again';

/**
 * Runs calls to Temporal with a common time limit: a request waits for them.
 *
 * @throws UnavailableError when Temporal cannot be reached. The calls may have succeeded.
 */
export async function temporalCall<T>(
  client: Client,
  timeoutMs: number,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await bounded(withDeadline(client.connection, timeoutMs, work), timeoutMs);
  } catch (error) {
    if (isGrpcServiceError(error) || isGrpcServiceError(cause(error))) {
      throw new UnavailableError(UNREACHABLE, { cause: error });
    }
    throw error;
  }
}

/** Bounds a call, since the SDK's pauses between its own retries exceed its deadline by seconds. */
async function bounded<T>(call: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new UnavailableError(UNREACHABLE)), timeoutMs);
  });
  try {
    return await Promise.race([call, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

function cause(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}
