import { setTimeout as delay } from 'node:timers/promises';
import {
  Connection,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  type ConnectionOptions,
} from '@temporalio/client';

/** A connection that is made with its first call. */
export interface LazyConnection {
  readonly connection: Connection;
  /** Closes the connection once no retry is pending, 10 s later at most. */
  readonly close: () => Promise<void>;
}

/** Milliseconds by which a timer may be late. */
const LATE_MS = 20;

/**
 * Returns a connection whose calls the SDK retries, as by default, until the connection is being closed: the SDK cannot
 * cancel a pending retry, which on a closed channel throws outside of any call and ends the process.
 */
export function lazyConnection(options: ConnectionOptions): LazyConnection {
  const { delayFunction, retryableDecider } = defaultGrpcRetryOptions();
  let isClosing = false;
  let lastRetryAt = 0;
  const retries = makeGrpcRetryInterceptor({
    retryableDecider: (attempt, status) => !isClosing && retryableDecider(attempt, status),
    delayFunction(attempt, status) {
      const ms = delayFunction(attempt, status);
      lastRetryAt = Math.max(lastRetryAt, performance.now() + ms);
      return ms;
    },
  });
  const connection = Connection.lazy({ ...options, interceptors: [retries] });
  return {
    connection,
    async close() {
      isClosing = true;
      await delay(Math.max(lastRetryAt + LATE_MS - performance.now(), 0));
      await connection.close();
    },
  };
}
