import type { History } from '@temporalio/common/lib/proto-utils.js';
import proto from '@temporalio/proto';

const { History: HistoryMessage } = proto.temporal.api.history.v1;

/** What tells of the machine that the history was recorded on, and is never looked at in a replay. */
const OF_THE_MACHINE: Readonly<Record<string, string>> = {
  identity: 'recorder',
  stackTrace: '',
};

/**
 * The history as text to be kept, an event a line, without hosts and paths. It is the message field
 * by field: the SDK's own JSON needs one protobufjs for all of its packages, which an install does
 * not give.
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

/** Reads what {@link historyToText} has made. */
export function historyFromText(text: string): History {
  return HistoryMessage.fromObject(JSON.parse(text));
}
