import { findProgram } from '../../dev/processes/find-program.js';

/** Whether a program can start Docker engines of its own, in a network of its own, and kill them. */
export const canHaveOwnEngine =
  process.platform === 'linux' &&
  process.getuid?.() === 0 &&
  (await Promise.all(['dockerd', 'ip', 'unshare'].map(findProgram))).every(Boolean);
