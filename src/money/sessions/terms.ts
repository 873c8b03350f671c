import { ONE } from '../../types/money.js';

/** What a wallet may have held for a session, in base units of pathUSD. */
export const MIN_DEPOSIT = ONE;
export const MAX_DEPOSIT = 100n * ONE;
