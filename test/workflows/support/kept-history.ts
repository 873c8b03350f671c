import type { History } from '@temporalio/common/lib/proto-utils.js';
import proto from '@temporalio/proto';

const { History: HistoryMessage } = proto.temporal.api.history.v1;

/** Event fields that identify the recording machine; a replay never reads them. */
const OF_THE_MACHINE: Readonly<Record<string, string>> = {
  identity: 'recorder',
  stackTrace: '',
};

/**
 * Converts a history to text for storage, one event a line, without hosts and paths. It maps the message
 * field by field: the SDK's own JSON needs one protobufjs for all of its packages, which an install does
 * not provide.
 */
export function historyToText(history: History): string {
  const { events } = HistoryMessage.toObject(HistoryMessage.fromObject(history), {
    enums: String,
    longs: String,
    bytes: String,
  });
  const withoutMachine = (key: string, value: unknown) =>
    typeof value === 'string' ? (OF_THE_MACHINE[key] ?? value) : value;
  const lines = (events as unknown[]).map((event) => JSON.stringify(event, withoutMachine));
  return `{"events":[\n${lines.join(',\n')}\n]}\n`;
}

/** Parses the output of {@link historyToText}. */
export function historyFromText(text: string): History {
  return HistoryMessage.fromObject(JSON.parse(text));
}
