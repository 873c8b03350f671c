import type { NamedFinding, Status } from './check.js';

const LABELS: Readonly<Record<Status, string>> = {
  ok: 'ok',
  warning: 'warning',
  failure: 'FAILURE',
};

export const hasFailed = (findings: readonly NamedFinding[]): boolean =>
  findings.some(({ status }) => status === 'failure');

/** Returns the report for a terminal, a line for each finding and one with the counts. */
export function reportAsText(findings: readonly NamedFinding[]): string {
  const widths = {
    status: Math.max(...Object.values(LABELS).map((label) => label.length)),
    check: Math.max(0, ...findings.map(({ check }) => check.length)),
  };
  const lines = findings.map(
    ({ check, status, text }) =>
      `${LABELS[status].padEnd(widths.status)}  ${check.padEnd(widths.check)}  ${text}`,
  );
  return [...lines, '', summaryOf(findings)].join('\n');
}

function summaryOf(findings: readonly NamedFinding[]): string {
  const counts = (['failure', 'warning'] as const).flatMap((status) => {
    const count = findings.filter((each) => each.status === status).length;
    return count === 0 ? [] : [`${count} ${status}${count === 1 ? '' : 's'}`];
  });
  return counts.length === 0 ? 'All is well.' : `${counts.join(', ')}.`;
}

/** Returns the report for programs, on one line. */
export function reportAsJson(findings: readonly NamedFinding[]): string {
  return JSON.stringify({ ok: !hasFailed(findings), findings });
}
