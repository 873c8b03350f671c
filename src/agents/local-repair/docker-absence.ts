/** A time in which Docker was not heard, in Unix milliseconds. */
export interface DockerAbsence {
  /** 0 where nobody knows what was before. */
  readonly from: number;
  readonly until: number;
}

/** Absences that are remembered: what ended in an earlier one was seen to long ago. */
const MAX_REMEMBERED = 20;

/** Those that are remembered after one more, oldest first. */
export function withAbsence(
  absences: readonly DockerAbsence[],
  absence: DockerAbsence,
): readonly DockerAbsence[] {
  return [...absences, absence].slice(-MAX_REMEMBERED);
}

/** The absence by which a container ended, and so has not crashed. */
export function absenceAt(
  absences: readonly DockerAbsence[],
  at: number,
): DockerAbsence | undefined {
  return absences.findLast(({ from, until }) => from <= at && at <= until);
}
