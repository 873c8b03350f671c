import { sanitizeForJsonb } from '../lib/well-formed.js';

/** Characters of an answer that another agent gets. */
const HANDED_LENGTH = 8_000;

/** Characters of an answer that a swarm keeps; the conversation has the whole. */
const KEPT_LENGTH = 32_000;

const cut = (text: string, most: number): string => sanitizeForJsonb(text.slice(0, most));

export const keptAnswer = (answer: string): string => cut(answer, KEPT_LENGTH);

/** Returns a member's question: the task, and the answer of the member before. */
export const memberText = (task: string, before: string | undefined): string =>
  before === undefined
    ? task
    : `${task}\n\nThe answer of the agent before you to this task:\n\n${cut(before, HANDED_LENGTH)}`;

/** Returns the coordinator's question. */
export function mergeText(task: string, answers: readonly string[]): string {
  const each = answers.map(
    (answer, index) => `Answer ${index + 1}:\n\n${cut(answer, HANDED_LENGTH)}`,
  );
  const intro = 'Several agents have answered the following task. Merge their answers into one.';
  return [intro, `The task:\n\n${task}`, ...each].join('\n\n');
}
