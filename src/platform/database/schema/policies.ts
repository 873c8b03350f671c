/** Which rows a table shows, and takes, in a transaction. */
export interface Policy {
  /** The column that names whose a row is, if through another row; none for tables of the platform alone. */
  readonly owner: string | undefined;
  /** True for the rows that the transaction may see. */
  readonly visible: string;
}

/** The platform's own work across tenants, and nobody else. */
export const PLATFORM: Policy = {
  owner: undefined,
  visible: `current_setting('app.platform', true) = 'on'`,
};

/** The rows of the transaction's user; unset, or empty, is nobody. And the platform. */
export const ownedThrough = (owner: string): Policy => ({
  owner,
  visible: `${owner} = current_setting('app.user_id', true) OR ${PLATFORM.visible}`,
});

/**
 * The same rows, for tables of which a report adds many up: the settings are asked for once a
 * statement, not for each row, and the planner counts on many, so that it does not sort them.
 */
export const summedThrough = (owner: string): Policy => ({
  owner,
  visible: `${owner} = (SELECT current_setting('app.user_id', true))
  OR (SELECT current_setting('app.platform', true)) = 'on'`,
});

/** The rows that belong to one of another table which the transaction may see. And the platform. */
export const seenWith = (owner: string, table: string): Policy => ({
  owner,
  visible: `${PLATFORM.visible} OR EXISTS (SELECT FROM ${table} s WHERE s.id = ${owner})`,
});
