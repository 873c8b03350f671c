/** The database, and its roles, on the PostgreSQL that `npm start` runs. */
export const OWN_DATABASE = {
  database: 'agent_platform',
  ownerRole: 'agent_platform_owner',
  servingRole: 'agent_platform_api',
} as const;
