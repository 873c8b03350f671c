const DAY_MS = 24 * 60 * 60_000;

/** Returns the seconds until midnight UTC. */
export const secondsOfDayLeft = (): number => Math.ceil((DAY_MS - (Date.now() % DAY_MS)) / 1_000);

/** Returns the UTC day as `YYYY-MM-DD`. */
export const utcDay = (): string => new Date().toISOString().slice(0, 10);
