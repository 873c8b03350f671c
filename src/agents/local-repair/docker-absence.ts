/** A period without events from Docker, in Unix milliseconds. */
export interface DockerAbsence {
  /** 0 if the time before is unknown. */
  readonly from: number;
  readonly until: number;
}

/** Containers that ended during earlier absences were handled long ago. */
const MAX_REMEMBERED = 20;

export function withAbsence(
  absences: readonly DockerAbsence[],
  absence: DockerAbsence,
): readonly DockerAbsence[] {
  return [...absences, absence].slice(-MAX_REMEMBERED);
}

/** Returns the absence during which a container ended; such an end is not a crash. */
export function absenceAt(
  absences: readonly DockerAbsence[],
  at: number,
): DockerAbsence | undefined {
  return absences.findLast(({ from, until }) => from <= at && at <= until);
}
