const LINES = 50_000;

/** Returns a large content whose completeness can be checked. */
export const contentOf = (number: number): string => `the file of ${number}\n`.repeat(LINES);

/** Returns the number of a content; undefined if it is incomplete. */
export function numberOf(content: string): number | undefined {
  const number = Number(/^the file of (\d+)\n/.exec(content)?.[1]);
  return content === contentOf(number) ? number : undefined;
}
