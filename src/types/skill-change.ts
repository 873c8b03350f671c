/** A user's change of one skill of an agent. */
export interface SkillChange {
  /** The skill's key in the runtime's configuration. */
  readonly name: string;
  /** Unchanged if undefined. */
  readonly enabled?: boolean | undefined;
  /** All settings of the skill; unchanged if undefined. */
  readonly config?: Readonly<Record<string, unknown>> | undefined;
}
