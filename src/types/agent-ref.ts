/** An agent in workflows; all else stays in the database, so that no secret enters a history. */
export interface AgentRef {
  readonly agentId: string;
  /** The owner: the tenant as which activities read and write. */
  readonly userId: string;
  /** The Docker host that the agent was placed on. */
  readonly host: string;
}
