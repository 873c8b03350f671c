import type { Stats } from 'node:fs';

/** Milliseconds, more than any file system takes for two changes to have different times. */
const TICK_MS = 2_000;

/**
 * What a file or folder is another one by. Nobody changes it, or puts another one in its place, without its
 * state being another: that time is set by the system alone.
 */
export const stateOf = ({ ctimeMs, dev, ino }: Stats): string => `${dev} ${ino} ${ctimeMs}`;

/** Not one that has just changed: it may change again within the same tick of the file system's clock. */
export const isSettled = ({ ctimeMs }: Stats): boolean => ctimeMs < Date.now() - TICK_MS;
