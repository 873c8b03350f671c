import { checkOf, failure, ok, type Check } from '../src/doctor/check.js';
import { UnavailableError } from '../src/lib/errors.js';
import { temporalSettings } from '../src/platform/temporal/settings.js';
import { temporalConnection } from './connection.js';
import { lazyConnection } from './lazy-connection.js';
import { addressOf, ATTEMPT_MS, checkNamespace, UnknownNamespaceError } from './start-check.js';

/** Checks that Temporal answers and has the namespace. */
export const temporalCheck: Check = checkOf(
  'temporal',
  { temporal: temporalSettings },
  async ({ temporal }) => {
    const place = temporalConnection(temporal);
    const { connectionOptions, namespace } = place;
    const { close, connection } = lazyConnection({
      ...connectionOptions,
      connectTimeout: ATTEMPT_MS,
    });
    try {
      await checkNamespace(connection, place);
      return [ok(`Temporal answers at ${addressOf(place)}, and has the namespace "${namespace}".`)];
    } catch (error) {
      if (error instanceof UnknownNamespaceError) return [failure(`${error.message}.`)];
      if (!(error instanceof UnavailableError)) throw error;
      return [failure(`${error.message}: start it, or correct TEMPORAL_ADDRESS.`)];
    } finally {
      void close();
    }
  },
);
