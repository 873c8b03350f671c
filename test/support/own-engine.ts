import { findProgram } from '../../dev/processes/find-program.js';

/** True if this process can start and kill Docker engines in a network of their own. */
export const canHaveOwnEngine =
  process.platform === 'linux' &&
  process.getuid?.() === 0 &&
  (await Promise.all(['dockerd', 'ip', 'unshare'].map(findProgram))).every(Boolean);
