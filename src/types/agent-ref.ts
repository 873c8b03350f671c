/**
 * All that a workflow knows of an agent. Everything else, secrets above all, is read from the
 * database by the activity that uses it, so that it never enters a workflow's history.
 */
export interface AgentRef {
  readonly agentId: string;
  /** Whose it is: the tenant that activities read and write as. */
  readonly userId: string;
  /** The Docker host it was placed on. */
  readonly host: string;
}
