import type { Stats } from 'node:fs';

/** Milliseconds; longer than the timestamp resolution of any file system. */
const TICK_MS = 2_000;

/**
 * Returns the identity of a file or folder; any change results in another, because only the system sets
 * ctime.
 */
export const stateOf = ({ ctimeMs, dev, ino }: Stats): string => `${dev} ${ino} ${ctimeMs}`;

/** Reports whether a file's last change is old enough that another change would get a different timestamp. */
export const isSettled = ({ ctimeMs }: Stats): boolean => ctimeMs < Date.now() - TICK_MS;
