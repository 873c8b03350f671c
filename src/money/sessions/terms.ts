import { ONE } from '../../types/money.js';

/** Limits of a session's deposit, in base units of pathUSD. */
export const MIN_DEPOSIT = ONE;
export const MAX_DEPOSIT = 100n * ONE;
