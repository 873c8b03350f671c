/**
 * The data of an agent in workflows. Activities read everything else, above all secrets, from the
 * database, so that it never enters a workflow's history.
 */
export interface AgentRef {
  readonly agentId: string;
  /** The owner: the tenant as which activities read and write. */
  readonly userId: string;
  /** The Docker host that the agent was placed on. */
  readonly host: string;
}
