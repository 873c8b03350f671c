/** A period without events from Docker, in Unix milliseconds. */
export interface DockerAbsence {
  /** 0 if the time before is unknown. */
  readonly from: number;
  readonly until: number;
}

/** Containers that ended during earlier absences were handled long ago. */
const MAX_REMEMBERED = 20;

/** The periods without events from this host's Docker. A container's end within one of them is no crash. */
export class DockerAbsences {
  #past: readonly DockerAbsence[] = [];
  /** Start of the present absence. */
  #from: number | undefined;

  /** Records that Docker has been unavailable since `from`; 0 if it was never seen available. */
  began(from: number): void {
    this.#from ??= from;
  }

  ended(from: number, until = Date.now()): void {
    this.#from = undefined;
    this.#past = [...this.#past, { from, until }].slice(-MAX_REMEMBERED);
  }

  /** Returns the past absences, oldest first. */
  get past(): readonly DockerAbsence[] {
    return this.#past;
  }

  /** Returns the start of the absence at a time; the present one includes all times since its start. */
  startOf(at: number): number | undefined {
    if (this.#from !== undefined && this.#from <= at) return this.#from;
    return absenceAt(this.#past, at)?.from;
  }
}

/** Returns the absence during which a container ended; such an end is not a crash. */
export function absenceAt(
  absences: readonly DockerAbsence[],
  at: number,
): DockerAbsence | undefined {
  return absences.findLast(({ from, until }) => from <= at && at <= until);
}
