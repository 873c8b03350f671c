import proto from '@temporalio/proto';
import type { NativeConnection } from '@temporalio/worker';
import { AGENT_ID, AGENT_OWNER, AGENT_PHASE } from '../workflows/search-attributes.js';

const CALLS_TIMEOUT_MS = 10_000;

/** Registers the search attributes of runs that the namespace lacks. */
export async function ensureSearchAttributes(
  connection: NativeConnection,
  namespace: string,
): Promise<void> {
  await connection.withDeadline(Date.now() + CALLS_TIMEOUT_MS, () => ensure(connection, namespace));
}

async function ensure(connection: NativeConnection, namespace: string): Promise<void> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const missing = [AGENT_ID, AGENT_OWNER, AGENT_PHASE].filter(
    ({ name }) => !Object.hasOwn(customAttributes, name),
  );
  if (missing.length === 0) return;
  const { INDEXED_VALUE_TYPE_KEYWORD } = proto.temporal.api.enums.v1.IndexedValueType;
  await connection.operatorService.addSearchAttributes({
    namespace,
    searchAttributes: Object.fromEntries(
      missing.map(({ name }) => [name, INDEXED_VALUE_TYPE_KEYWORD]),
    ),
  });
}
