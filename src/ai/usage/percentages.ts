/**
 * Returns whole percentages that add up to exactly 100, or to 0 if the sum is 0. The largest remainders are
 * rounded up, the first of equal ones first.
 */
export function percentagesOf(amounts: readonly number[]): number[] {
  const sum = amounts.reduce((total, amount) => total + amount, 0);
  if (sum === 0) return amounts.map(() => 0);
  const exact = amounts.map((amount) => (amount / sum) * 100);
  const percentages = exact.map(Math.floor);
  const missing = 100 - percentages.reduce((total, percent) => total + percent, 0);
  exact
    .map((percent, index) => ({ index, remainder: percent % 1 }))
    .sort((a, b) => b.remainder - a.remainder)
    .slice(0, missing)
    .forEach(({ index }) => (percentages[index] = (percentages[index] ?? 0) + 1));
  return percentages;
}
