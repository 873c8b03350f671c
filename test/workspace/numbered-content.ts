const LINES = 50_000;

/** Large, and seen to be whole. */
export const contentOf = (number: number): string => `the file of ${number}\n`.repeat(LINES);

/** The number of a content; undefined for what is not a whole one. */
export function numberOf(content: string): number | undefined {
  const number = Number(/^the file of (\d+)\n/.exec(content)?.[1]);
  return content === contentOf(number) ? number : undefined;
}
