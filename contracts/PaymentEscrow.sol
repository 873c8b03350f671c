// SPDX-License-Identifier: UNLICENSED
pragma solidity ^0.8.24;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";

/// Holds what payers deposit. The operator moves of it what a payer's signed hold allows, to the treasury
/// alone. What is not held its payer withdraws at any time, and what is held once the hold has expired: for
/// neither does anybody need the operator. Nobody owns the contract, and nothing of it can be changed.
///
/// The token has to move exactly what it is told to move.
contract PaymentEscrow is EIP712 {
    using SafeERC20 for IERC20;

    /// What a payer has let the operator use.
    struct Hold {
        address payer;
        uint128 amount;
        /// How much of it the treasury has had.
        uint128 settled;
        /// Unix seconds. From then on the payer can reclaim the rest.
        uint64 expiry;
        bool closed;
    }

    bytes32 private constant HOLD_TYPE =
        keccak256("Hold(address payer,uint256 amount,bytes32 nonce,uint64 deadline)");

    IERC20 public immutable token;
    address public immutable operator;
    address public immutable treasury;
    uint64 public immutable holdSeconds;

    /// What a payer can withdraw, or have held.
    mapping(address payer => uint256) public available;
    mapping(bytes32 id => Hold) public holds;

    event Deposited(address indexed payer, uint256 amount);
    event Withdrawn(address indexed payer, uint256 amount);
    event HoldOpened(bytes32 indexed id, address indexed payer, uint128 amount, uint64 expiry);
    event HoldSettled(bytes32 indexed id, uint128 cumulative, uint128 moved);
    event HoldClosed(bytes32 indexed id, uint128 settled, uint128 returned);

    error NotOperator();
    error NotPayer();
    error NothingToMove();
    error NotAvailable(uint256 available);
    error DeadlinePassed();
    error NonceUsed();
    error NotSigned();
    error NotOpen();
    error NotCumulative(uint128 settled);
    error MoreThanHeld(uint128 amount);
    error NotExpired(uint64 expiry);
    error BadSetup();

    modifier onlyOperator() {
        if (msg.sender != operator) revert NotOperator();
        _;
    }

    constructor(IERC20 token_, address operator_, address treasury_, uint64 holdSeconds_)
        EIP712("PaymentEscrow", "1")
    {
        bool isComplete = address(token_).code.length != 0 && operator_ != address(0)
            && treasury_ != address(0) && treasury_ != address(this) && holdSeconds_ != 0;
        if (!isComplete) revert BadSetup();
        token = token_;
        operator = operator_;
        treasury = treasury_;
        holdSeconds = holdSeconds_;
    }

    /// Names the hold that a payer's authorization with this nonce opens.
    function holdId(address payer, bytes32 nonce) public pure returns (bytes32) {
        return keccak256(abi.encode(payer, nonce));
    }

    /// Takes base units of the token, which the caller has approved.
    function deposit(uint256 amount) external {
        if (amount == 0) revert NothingToMove();
        available[msg.sender] += amount;
        emit Deposited(msg.sender, amount);
        token.safeTransferFrom(msg.sender, address(this), amount);
    }

    /// Gives back base units that are not held.
    function withdraw(uint256 amount) external {
        if (amount == 0) revert NothingToMove();
        _takeAvailable(msg.sender, amount);
        emit Withdrawn(msg.sender, amount);
        token.safeTransfer(msg.sender, amount);
    }

    /// Holds what a payer has signed. A nonce is good once; a payer that is a contract signs by ERC-1271.
    function open(
        address payer,
        uint128 amount,
        bytes32 nonce,
        uint64 deadline,
        bytes calldata signature
    ) external onlyOperator {
        if (amount == 0) revert NothingToMove();
        if (block.timestamp > deadline) revert DeadlinePassed();
        bytes32 id = holdId(payer, nonce);
        if (holds[id].payer != address(0)) revert NonceUsed();
        bytes32 signed =
            _hashTypedDataV4(keccak256(abi.encode(HOLD_TYPE, payer, amount, nonce, deadline)));
        if (!SignatureChecker.isValidSignatureNow(payer, signed, signature)) revert NotSigned();
        _takeAvailable(payer, amount);
        uint64 expiry = uint64(block.timestamp) + holdSeconds;
        holds[id] = Hold(payer, amount, 0, expiry, false);
        emit HoldOpened(id, payer, amount, expiry);
    }

    /// Brings what the treasury has had of a hold to `cumulative`, so that nothing is moved twice.
    function settle(bytes32 id, uint128 cumulative) external onlyOperator {
        _payTreasury(_settle(id, cumulative));
    }

    /// Settles for the last time; the payer gets the rest.
    function close(bytes32 id, uint128 cumulative) external onlyOperator {
        uint128 moved = _settle(id, cumulative);
        address payer = holds[id].payer;
        uint128 rest = _end(id);
        _payTreasury(moved);
        // Who cannot be sent it, as the token has it, keeps neither the treasury nor others waiting.
        if (rest != 0 && !token.trySafeTransfer(payer, rest)) available[payer] += rest;
    }

    /// Gives the payer what the treasury has not had of a hold that has expired.
    function reclaim(bytes32 id) external {
        Hold storage hold = _openHold(id);
        if (msg.sender != hold.payer) revert NotPayer();
        if (block.timestamp < hold.expiry) revert NotExpired(hold.expiry);
        uint128 rest = _end(id);
        if (rest != 0) token.safeTransfer(msg.sender, rest);
    }

    function _takeAvailable(address payer, uint256 amount) private {
        uint256 has = available[payer];
        if (has < amount) revert NotAvailable(has);
        available[payer] = has - amount;
    }

    function _settle(bytes32 id, uint128 cumulative) private returns (uint128 moved) {
        Hold storage hold = _openHold(id);
        if (cumulative < hold.settled) revert NotCumulative(hold.settled);
        if (cumulative > hold.amount) revert MoreThanHeld(hold.amount);
        moved = cumulative - hold.settled;
        hold.settled = cumulative;
        if (moved != 0) emit HoldSettled(id, cumulative, moved);
    }

    function _end(bytes32 id) private returns (uint128 rest) {
        Hold storage hold = holds[id];
        hold.closed = true;
        rest = hold.amount - hold.settled;
        emit HoldClosed(id, hold.settled, rest);
    }

    function _payTreasury(uint128 moved) private {
        if (moved != 0) token.safeTransfer(treasury, moved);
    }

    function _openHold(bytes32 id) private view returns (Hold storage hold) {
        hold = holds[id];
        if (hold.payer == address(0) || hold.closed) revert NotOpen();
    }
}
