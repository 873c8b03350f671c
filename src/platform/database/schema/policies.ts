/** The rows that a transaction may read and write in a table. */
export interface Policy {
  /** Column with the row's owner, possibly through another row; undefined for tables of the platform only. */
  readonly owner: string | undefined;
  /** SQL condition for the rows that the transaction may see. */
  readonly visible: string;
}

/** Rows for the platform's own work across tenants only. */
export const PLATFORM: Policy = {
  owner: undefined,
  visible: `current_setting('app.platform', true) = 'on'`,
};

/** Rows of the transaction's user, and all rows for the platform; without a user none. */
export const ownedThrough = (owner: string): Policy => ({
  owner,
  visible: `${owner} = current_setting('app.user_id', true) OR ${PLATFORM.visible}`,
});

/**
 * Same rows as `ownedThrough`, for tables that reports sum up: the settings are read once per statement
 * instead of per row, and the planner expects many rows, so it does not sort them.
 */
export const summedThrough = (owner: string): Policy => ({
  owner,
  visible: `${owner} = (SELECT current_setting('app.user_id', true))
  OR (SELECT current_setting('app.platform', true)) = 'on'`,
});

/** Rows that belong to a visible row of another table, and all rows for the platform. */
export const seenWith = (owner: string, table: string): Policy => ({
  owner,
  visible: `${PLATFORM.visible} OR EXISTS (SELECT FROM ${table} s WHERE s.id = ${owner})`,
});

/** Rows of two users, visible to both, and all rows for the platform. */
export const seenByBoth = (owner: string, other: string): Policy => ({
  owner,
  visible: `${owner} = current_setting('app.user_id', true)
  OR ${other} = current_setting('app.user_id', true) OR ${PLATFORM.visible}`,
});
