// Made by tools/make_ptx.py of expand.cu with CUDA 13.0: not to be edited.
#pragma once

namespace arrowdl {

// clang-format off
inline constexpr char kExpandPtx[] = R"ptx(
.version 6.0
.target sm_52
.address_size 64
)ptx"
    R"ptx(.visible .entry expand_bits(
	.param .u64 expand_bits_param_0,
	.param .u64 expand_bits_param_1,
	.param .u64 expand_bits_param_2,
	.param .u64 expand_bits_param_3,
	.param .u64 expand_bits_param_4
)
{
	.reg .pred 	%p<10>;
	.reg .b16 	%rs<4>;
	.reg .b32 	%r<27>;
	.reg .b64 	%rd<38>;
	ld.param.u64 	%rd19, [expand_bits_param_0];
	ld.param.u64 	%rd15, [expand_bits_param_1];
	ld.param.u64 	%rd16, [expand_bits_param_2];
	ld.param.u64 	%rd17, [expand_bits_param_3];
	ld.param.u64 	%rd18, [expand_bits_param_4];
	cvta.to.global.u64 	%rd1, %rd19;
	cvta.to.global.u64 	%rd2, %rd16;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r8, %ntid.x;
	cvt.u64.u32 	%rd3, %r8;
	mul.wide.u32 	%rd20, %r1, %r8;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd21, %r2;
	add.s64 	%rd34, %rd20, %rd21;
	setp.ge.s64 	%p1, %rd34, %rd15;
	@%p1 bra 	$L__BB0_10;
	setp.eq.s64 	%p2, %rd16, 0;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd22, %r3;
	mul.lo.s64 	%rd5, %rd22, %rd3;
	@%p2 bra 	$L__BB0_9;
	setp.eq.s64 	%p3, %rd18, 1;
	@%p3 bra 	$L__BB0_7;
	bra.uni 	$L__BB0_3;
$L__BB0_7:
	cvt.u32.u64 	%r18, %rd3;
	mad.lo.s32 	%r19, %r18, %r1, %r2;
	cvt.u32.u64 	%r20, %rd17;
	add.s32 	%r26, %r19, %r20;
	mul.lo.s32 	%r5, %r18, %r3;
$L__BB0_8:
	.pragma "nounroll";
	add.s64 	%rd29, %rd17, %rd34;
	shr.s64 	%rd30, %rd29, 3;
	add.s64 	%rd31, %rd2, %rd30;
	ld.global.u8 	%r21, [%rd31];
	and.b32  	%r22, %r26, 7;
	mov.u32 	%r23, 1;
	shl.b32 	%r24, %r23, %r22;
	and.b32  	%r25, %r24, %r21;
	setp.ne.s32 	%p7, %r25, 0;
	selp.u16 	%rs2, 1, 0, %p7;
	add.s64 	%rd32, %rd1, %rd34;
	st.global.u8 	[%rd32], %rs2;
	add.s32 	%r26, %r26, %r5;
	add.s64 	%rd34, %rd34, %rd5;
	setp.lt.s64 	%p8, %rd34, %rd15;
	@%p8 bra 	$L__BB0_8;
	bra.uni 	$L__BB0_10;
$L__BB0_9:
	.pragma "nounroll";
	add.s64 	%rd33, %rd1, %rd34;
	mov.u16 	%rs3, 1;
	st.global.u8 	[%rd33], %rs3;
	add.s64 	%rd34, %rd34, %rd5;
	setp.lt.s64 	%p9, %rd34, %rd15;
	@%p9 bra 	$L__BB0_9;
	bra.uni 	$L__BB0_10;
$L__BB0_3:
	.pragma "nounroll";
	or.b64  	%rd23, %rd34, %rd18;
	and.b64  	%rd24, %rd23, -4294967296;
	setp.eq.s64 	%p4, %rd24, 0;
	@%p4 bra 	$L__BB0_5;
	div.s64 	%rd35, %rd34, %rd18;
	bra.uni 	$L__BB0_6;
$L__BB0_5:
	cvt.u32.u64 	%r9, %rd18;
	cvt.u32.u64 	%r10, %rd34;
	div.u32 	%r11, %r10, %r9;
	cvt.u64.u32 	%rd35, %r11;
$L__BB0_6:
	add.s64 	%rd25, %rd35, %rd17;
	shr.s64 	%rd26, %rd25, 3;
	add.s64 	%rd27, %rd2, %rd26;
	ld.global.u8 	%r12, [%rd27];
	cvt.u32.u64 	%r13, %rd25;
	and.b32  	%r14, %r13, 7;
	mov.u32 	%r15, 1;
	shl.b32 	%r16, %r15, %r14;
	and.b32  	%r17, %r16, %r12;
	setp.ne.s32 	%p5, %r17, 0;
	selp.u16 	%rs1, 1, 0, %p5;
	add.s64 	%rd28, %rd1, %rd34;
	st.global.u8 	[%rd28], %rs1;
	add.s64 	%rd34, %rd34, %rd5;
	setp.lt.s64 	%p6, %rd34, %rd15;
	@%p6 bra 	$L__BB0_3;
$L__BB0_10:
	ret;
}
)ptx"
    R"ptx(.visible .entry fill_unset_1(
	.param .u64 fill_unset_1_param_0,
	.param .u64 fill_unset_1_param_1,
	.param .u64 fill_unset_1_param_2,
	.param .u64 fill_unset_1_param_3,
	.param .u64 fill_unset_1_param_4,
	.param .u8 fill_unset_1_param_5
)
{
	.reg .pred 	%p<8>;
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<27>;
	.reg .b64 	%rd<34>;
	ld.param.u8 	%rs1, [fill_unset_1_param_5];
	ld.param.u64 	%rd16, [fill_unset_1_param_0];
	ld.param.u64 	%rd13, [fill_unset_1_param_1];
	ld.param.u64 	%rd17, [fill_unset_1_param_2];
	ld.param.u64 	%rd14, [fill_unset_1_param_3];
	ld.param.u64 	%rd15, [fill_unset_1_param_4];
	cvta.to.global.u64 	%rd1, %rd16;
	cvta.to.global.u64 	%rd2, %rd17;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r8, %ntid.x;
	cvt.u64.u32 	%rd3, %r8;
	mul.wide.u32 	%rd18, %r1, %r8;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd19, %r2;
	add.s64 	%rd31, %rd18, %rd19;
	setp.ge.s64 	%p1, %rd31, %rd13;
	@%p1 bra 	$L__BB1_13;
	setp.eq.s64 	%p2, %rd15, 1;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd20, %r3;
	mul.lo.s64 	%rd5, %rd20, %rd3;
	@%p2 bra 	$L__BB1_9;
	bra.uni 	$L__BB1_2;
$L__BB1_9:
	cvt.u32.u64 	%r18, %rd3;
	mad.lo.s32 	%r19, %r18, %r1, %r2;
	cvt.u32.u64 	%r20, %rd14;
	add.s32 	%r26, %r19, %r20;
	mul.lo.s32 	%r5, %r18, %r3;
$L__BB1_10:
	.pragma "nounroll";
	add.s64 	%rd27, %rd14, %rd31;
	shr.s64 	%rd28, %rd27, 3;
	add.s64 	%rd29, %rd2, %rd28;
	ld.global.u8 	%r21, [%rd29];
	and.b32  	%r22, %r26, 7;
	mov.u32 	%r23, 1;
	shl.b32 	%r24, %r23, %r22;
	and.b32  	%r25, %r24, %r21;
	setp.ne.s32 	%p6, %r25, 0;
	@%p6 bra 	$L__BB1_12;
	add.s64 	%rd30, %rd1, %rd31;
	st.global.u8 	[%rd30], %rs1;
$L__BB1_12:
	add.s64 	%rd31, %rd31, %rd5;
	add.s32 	%r26, %r26, %r5;
	setp.lt.s64 	%p7, %rd31, %rd13;
	@%p7 bra 	$L__BB1_10;
	bra.uni 	$L__BB1_13;
$L__BB1_2:
	cvt.u32.u64 	%r9, %rd15;
$L__BB1_3:
	.pragma "nounroll";
	or.b64  	%rd21, %rd31, %rd15;
	and.b64  	%rd22, %rd21, -4294967296;
	setp.eq.s64 	%p3, %rd22, 0;
	@%p3 bra 	$L__BB1_5;
	div.s64 	%rd32, %rd31, %rd15;
	bra.uni 	$L__BB1_6;
$L__BB1_5:
	cvt.u32.u64 	%r10, %rd31;
	div.u32 	%r11, %r10, %r9;
	cvt.u64.u32 	%rd32, %r11;
$L__BB1_6:
	add.s64 	%rd23, %rd32, %rd14;
	shr.s64 	%rd24, %rd23, 3;
	add.s64 	%rd25, %rd2, %rd24;
	ld.global.u8 	%r12, [%rd25];
	cvt.u32.u64 	%r13, %rd23;
	and.b32  	%r14, %r13, 7;
	mov.u32 	%r15, 1;
	shl.b32 	%r16, %r15, %r14;
	and.b32  	%r17, %r16, %r12;
	setp.ne.s32 	%p4, %r17, 0;
	@%p4 bra 	$L__BB1_8;
	add.s64 	%rd26, %rd1, %rd31;
	st.global.u8 	[%rd26], %rs1;
$L__BB1_8:
	add.s64 	%rd31, %rd31, %rd5;
	setp.lt.s64 	%p5, %rd31, %rd13;
	@%p5 bra 	$L__BB1_3;
$L__BB1_13:
	ret;
}
)ptx"
    R"ptx(.visible .entry fill_unset_2(
	.param .u64 fill_unset_2_param_0,
	.param .u64 fill_unset_2_param_1,
	.param .u64 fill_unset_2_param_2,
	.param .u64 fill_unset_2_param_3,
	.param .u64 fill_unset_2_param_4,
	.param .u16 fill_unset_2_param_5
)
{
	.reg .pred 	%p<8>;
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<27>;
	.reg .b64 	%rd<44>;
	ld.param.u64 	%rd24, [fill_unset_2_param_0];
	ld.param.u64 	%rd21, [fill_unset_2_param_1];
	ld.param.u64 	%rd25, [fill_unset_2_param_2];
	ld.param.u64 	%rd22, [fill_unset_2_param_3];
	ld.param.u64 	%rd23, [fill_unset_2_param_4];
	ld.param.u16 	%rs1, [fill_unset_2_param_5];
	cvta.to.global.u64 	%rd1, %rd24;
	cvta.to.global.u64 	%rd2, %rd25;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r8, %ntid.x;
	cvt.u64.u32 	%rd3, %r8;
	mul.wide.u32 	%rd26, %r1, %r8;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd27, %r2;
	add.s64 	%rd40, %rd26, %rd27;
	setp.ge.s64 	%p1, %rd40, %rd21;
	@%p1 bra 	$L__BB2_13;
	setp.eq.s64 	%p2, %rd23, 1;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd28, %r3;
	mul.lo.s64 	%rd5, %rd28, %rd3;
	@%p2 bra 	$L__BB2_9;
	bra.uni 	$L__BB2_2;
$L__BB2_9:
	cvt.u32.u64 	%r18, %rd3;
	mad.lo.s32 	%r19, %r18, %r1, %r2;
	cvt.u32.u64 	%r20, %rd22;
	add.s32 	%r26, %r19, %r20;
	mul.lo.s32 	%r5, %r18, %r3;
	shl.b64 	%rd35, %rd40, 1;
	add.s64 	%rd42, %rd1, %rd35;
	shl.b64 	%rd16, %rd5, 1;
$L__BB2_10:
	.pragma "nounroll";
	add.s64 	%rd36, %rd22, %rd40;
	shr.s64 	%rd37, %rd36, 3;
	add.s64 	%rd38, %rd2, %rd37;
	ld.global.u8 	%r21, [%rd38];
	and.b32  	%r22, %r26, 7;
	mov.u32 	%r23, 1;
	shl.b32 	%r24, %r23, %r22;
	and.b32  	%r25, %r24, %r21;
	setp.ne.s32 	%p6, %r25, 0;
	@%p6 bra 	$L__BB2_12;
	st.global.u16 	[%rd42], %rs1;
$L__BB2_12:
	add.s32 	%r26, %r26, %r5;
	add.s64 	%rd42, %rd42, %rd16;
	add.s64 	%rd40, %rd40, %rd5;
	setp.lt.s64 	%p7, %rd40, %rd21;
	@%p7 bra 	$L__BB2_10;
	bra.uni 	$L__BB2_13;
$L__BB2_2:
	shl.b64 	%rd29, %rd40, 1;
	add.s64 	%rd39, %rd1, %rd29;
	shl.b64 	%rd7, %rd5, 1;
	cvt.u32.u64 	%r9, %rd23;
$L__BB2_3:
	.pragma "nounroll";
	or.b64  	%rd30, %rd40, %rd23;
	and.b64  	%rd31, %rd30, -4294967296;
	setp.eq.s64 	%p3, %rd31, 0;
	@%p3 bra 	$L__BB2_5;
	div.s64 	%rd41, %rd40, %rd23;
	bra.uni 	$L__BB2_6;
$L__BB2_5:
	cvt.u32.u64 	%r10, %rd40;
	div.u32 	%r11, %r10, %r9;
	cvt.u64.u32 	%rd41, %r11;
$L__BB2_6:
	add.s64 	%rd32, %rd41, %rd22;
	shr.s64 	%rd33, %rd32, 3;
	add.s64 	%rd34, %rd2, %rd33;
	ld.global.u8 	%r12, [%rd34];
	cvt.u32.u64 	%r13, %rd32;
	and.b32  	%r14, %r13, 7;
	mov.u32 	%r15, 1;
	shl.b32 	%r16, %r15, %r14;
	and.b32  	%r17, %r16, %r12;
	setp.ne.s32 	%p4, %r17, 0;
	@%p4 bra 	$L__BB2_8;
	st.global.u16 	[%rd39], %rs1;
$L__BB2_8:
	add.s64 	%rd39, %rd39, %rd7;
	add.s64 	%rd40, %rd40, %rd5;
	setp.lt.s64 	%p5, %rd40, %rd21;
	@%p5 bra 	$L__BB2_3;
$L__BB2_13:
	ret;
}
)ptx"
    R"ptx(.visible .entry fill_unset_4(
	.param .u64 fill_unset_4_param_0,
	.param .u64 fill_unset_4_param_1,
	.param .u64 fill_unset_4_param_2,
	.param .u64 fill_unset_4_param_3,
	.param .u64 fill_unset_4_param_4,
	.param .u32 fill_unset_4_param_5
)
{
	.reg .pred 	%p<8>;
	.reg .b32 	%r<28>;
	.reg .b64 	%rd<44>;
	ld.param.u64 	%rd24, [fill_unset_4_param_0];
	ld.param.u64 	%rd21, [fill_unset_4_param_1];
	ld.param.u64 	%rd25, [fill_unset_4_param_2];
	ld.param.u64 	%rd22, [fill_unset_4_param_3];
	ld.param.u64 	%rd23, [fill_unset_4_param_4];
	ld.param.u32 	%r8, [fill_unset_4_param_5];
	cvta.to.global.u64 	%rd1, %rd24;
	cvta.to.global.u64 	%rd2, %rd25;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r9, %ntid.x;
	cvt.u64.u32 	%rd3, %r9;
	mul.wide.u32 	%rd26, %r1, %r9;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd27, %r2;
	add.s64 	%rd40, %rd26, %rd27;
	setp.ge.s64 	%p1, %rd40, %rd21;
	@%p1 bra 	$L__BB3_13;
	setp.eq.s64 	%p2, %rd23, 1;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd28, %r3;
	mul.lo.s64 	%rd5, %rd28, %rd3;
	@%p2 bra 	$L__BB3_9;
	bra.uni 	$L__BB3_2;
$L__BB3_9:
	cvt.u32.u64 	%r19, %rd3;
	mad.lo.s32 	%r20, %r19, %r1, %r2;
	cvt.u32.u64 	%r21, %rd22;
	add.s32 	%r27, %r20, %r21;
	mul.lo.s32 	%r5, %r19, %r3;
	shl.b64 	%rd35, %rd40, 2;
	add.s64 	%rd42, %rd1, %rd35;
	shl.b64 	%rd16, %rd5, 2;
$L__BB3_10:
	.pragma "nounroll";
	add.s64 	%rd36, %rd22, %rd40;
	shr.s64 	%rd37, %rd36, 3;
	add.s64 	%rd38, %rd2, %rd37;
	ld.global.u8 	%r22, [%rd38];
	and.b32  	%r23, %r27, 7;
	mov.u32 	%r24, 1;
	shl.b32 	%r25, %r24, %r23;
	and.b32  	%r26, %r25, %r22;
	setp.ne.s32 	%p6, %r26, 0;
	@%p6 bra 	$L__BB3_12;
	st.global.u32 	[%rd42], %r8;
$L__BB3_12:
	add.s32 	%r27, %r27, %r5;
	add.s64 	%rd42, %rd42, %rd16;
	add.s64 	%rd40, %rd40, %rd5;
	setp.lt.s64 	%p7, %rd40, %rd21;
	@%p7 bra 	$L__BB3_10;
	bra.uni 	$L__BB3_13;
$L__BB3_2:
	shl.b64 	%rd29, %rd40, 2;
	add.s64 	%rd39, %rd1, %rd29;
	shl.b64 	%rd7, %rd5, 2;
	cvt.u32.u64 	%r10, %rd23;
$L__BB3_3:
	.pragma "nounroll";
	or.b64  	%rd30, %rd40, %rd23;
	and.b64  	%rd31, %rd30, -4294967296;
	setp.eq.s64 	%p3, %rd31, 0;
	@%p3 bra 	$L__BB3_5;
	div.s64 	%rd41, %rd40, %rd23;
	bra.uni 	$L__BB3_6;
$L__BB3_5:
	cvt.u32.u64 	%r11, %rd40;
	div.u32 	%r12, %r11, %r10;
	cvt.u64.u32 	%rd41, %r12;
$L__BB3_6:
	add.s64 	%rd32, %rd41, %rd22;
	shr.s64 	%rd33, %rd32, 3;
	add.s64 	%rd34, %rd2, %rd33;
	ld.global.u8 	%r13, [%rd34];
	cvt.u32.u64 	%r14, %rd32;
	and.b32  	%r15, %r14, 7;
	mov.u32 	%r16, 1;
	shl.b32 	%r17, %r16, %r15;
	and.b32  	%r18, %r17, %r13;
	setp.ne.s32 	%p4, %r18, 0;
	@%p4 bra 	$L__BB3_8;
	st.global.u32 	[%rd39], %r8;
$L__BB3_8:
	add.s64 	%rd39, %rd39, %rd7;
	add.s64 	%rd40, %rd40, %rd5;
	setp.lt.s64 	%p5, %rd40, %rd21;
	@%p5 bra 	$L__BB3_3;
$L__BB3_13:
	ret;
}
)ptx"
    R"ptx(.visible .entry fill_unset_8(
	.param .u64 fill_unset_8_param_0,
	.param .u64 fill_unset_8_param_1,
	.param .u64 fill_unset_8_param_2,
	.param .u64 fill_unset_8_param_3,
	.param .u64 fill_unset_8_param_4,
	.param .u64 fill_unset_8_param_5
)
{
	.reg .pred 	%p<8>;
	.reg .b32 	%r<27>;
	.reg .b64 	%rd<45>;
	ld.param.u64 	%rd25, [fill_unset_8_param_0];
	ld.param.u64 	%rd21, [fill_unset_8_param_1];
	ld.param.u64 	%rd26, [fill_unset_8_param_2];
	ld.param.u64 	%rd22, [fill_unset_8_param_3];
	ld.param.u64 	%rd23, [fill_unset_8_param_4];
	ld.param.u64 	%rd24, [fill_unset_8_param_5];
	cvta.to.global.u64 	%rd1, %rd25;
	cvta.to.global.u64 	%rd2, %rd26;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r8, %ntid.x;
	cvt.u64.u32 	%rd3, %r8;
	mul.wide.u32 	%rd27, %r1, %r8;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd28, %r2;
	add.s64 	%rd41, %rd27, %rd28;
	setp.ge.s64 	%p1, %rd41, %rd21;
	@%p1 bra 	$L__BB4_13;
	setp.eq.s64 	%p2, %rd23, 1;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd29, %r3;
	mul.lo.s64 	%rd5, %rd29, %rd3;
	@%p2 bra 	$L__BB4_9;
	bra.uni 	$L__BB4_2;
$L__BB4_9:
	cvt.u32.u64 	%r18, %rd3;
	mad.lo.s32 	%r19, %r18, %r1, %r2;
	cvt.u32.u64 	%r20, %rd22;
	add.s32 	%r26, %r19, %r20;
	mul.lo.s32 	%r5, %r18, %r3;
	shl.b64 	%rd36, %rd41, 3;
	add.s64 	%rd43, %rd1, %rd36;
	shl.b64 	%rd16, %rd5, 3;
$L__BB4_10:
	.pragma "nounroll";
	add.s64 	%rd37, %rd22, %rd41;
	shr.s64 	%rd38, %rd37, 3;
	add.s64 	%rd39, %rd2, %rd38;
	ld.global.u8 	%r21, [%rd39];
	and.b32  	%r22, %r26, 7;
	mov.u32 	%r23, 1;
	shl.b32 	%r24, %r23, %r22;
	and.b32  	%r25, %r24, %r21;
	setp.ne.s32 	%p6, %r25, 0;
	@%p6 bra 	$L__BB4_12;
	st.global.u64 	[%rd43], %rd24;
$L__BB4_12:
	add.s32 	%r26, %r26, %r5;
	add.s64 	%rd43, %rd43, %rd16;
	add.s64 	%rd41, %rd41, %rd5;
	setp.lt.s64 	%p7, %rd41, %rd21;
	@%p7 bra 	$L__BB4_10;
	bra.uni 	$L__BB4_13;
$L__BB4_2:
	shl.b64 	%rd30, %rd41, 3;
	add.s64 	%rd40, %rd1, %rd30;
	shl.b64 	%rd7, %rd5, 3;
	cvt.u32.u64 	%r9, %rd23;
$L__BB4_3:
	.pragma "nounroll";
	or.b64  	%rd31, %rd41, %rd23;
	and.b64  	%rd32, %rd31, -4294967296;
	setp.eq.s64 	%p3, %rd32, 0;
	@%p3 bra 	$L__BB4_5;
	div.s64 	%rd42, %rd41, %rd23;
	bra.uni 	$L__BB4_6;
$L__BB4_5:
	cvt.u32.u64 	%r10, %rd41;
	div.u32 	%r11, %r10, %r9;
	cvt.u64.u32 	%rd42, %r11;
$L__BB4_6:
	add.s64 	%rd33, %rd42, %rd22;
	shr.s64 	%rd34, %rd33, 3;
	add.s64 	%rd35, %rd2, %rd34;
	ld.global.u8 	%r12, [%rd35];
	cvt.u32.u64 	%r13, %rd33;
	and.b32  	%r14, %r13, 7;
	mov.u32 	%r15, 1;
	shl.b32 	%r16, %r15, %r14;
	and.b32  	%r17, %r16, %r12;
	setp.ne.s32 	%p4, %r17, 0;
	@%p4 bra 	$L__BB4_8;
	st.global.u64 	[%rd40], %rd24;
$L__BB4_8:
	add.s64 	%rd40, %rd40, %rd7;
	add.s64 	%rd41, %rd41, %rd5;
	setp.lt.s64 	%p5, %rd41, %rd21;
	@%p5 bra 	$L__BB4_3;
$L__BB4_13:
	ret;
}
)ptx"
    R"ptx(.visible .entry fill_unset_16(
	.param .u64 fill_unset_16_param_0,
	.param .u64 fill_unset_16_param_1,
	.param .u64 fill_unset_16_param_2,
	.param .u64 fill_unset_16_param_3,
	.param .u64 fill_unset_16_param_4,
	.param .align 16 .b8 fill_unset_16_param_5[16]
)
{
	.reg .pred 	%p<8>;
	.reg .b32 	%r<27>;
	.reg .b64 	%rd<46>;
	ld.param.u64 	%rd26, [fill_unset_16_param_0];
	ld.param.u64 	%rd21, [fill_unset_16_param_1];
	ld.param.u64 	%rd27, [fill_unset_16_param_2];
	ld.param.u64 	%rd22, [fill_unset_16_param_3];
	ld.param.u64 	%rd23, [fill_unset_16_param_4];
	ld.param.u64 	%rd25, [fill_unset_16_param_5+8];
	ld.param.u64 	%rd24, [fill_unset_16_param_5];
	cvta.to.global.u64 	%rd1, %rd26;
	cvta.to.global.u64 	%rd2, %rd27;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r8, %ntid.x;
	cvt.u64.u32 	%rd3, %r8;
	mul.wide.u32 	%rd28, %r1, %r8;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd29, %r2;
	add.s64 	%rd42, %rd28, %rd29;
	setp.ge.s64 	%p1, %rd42, %rd21;
	@%p1 bra 	$L__BB5_13;
	setp.eq.s64 	%p2, %rd23, 1;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd30, %r3;
	mul.lo.s64 	%rd5, %rd30, %rd3;
	@%p2 bra 	$L__BB5_9;
	bra.uni 	$L__BB5_2;
$L__BB5_9:
	cvt.u32.u64 	%r18, %rd3;
	shl.b64 	%rd37, %rd42, 4;
	add.s64 	%rd44, %rd1, %rd37;
	shl.b64 	%rd16, %rd5, 4;
	mad.lo.s32 	%r19, %r18, %r1, %r2;
	cvt.u32.u64 	%r20, %rd22;
	add.s32 	%r26, %r19, %r20;
	mul.lo.s32 	%r5, %r18, %r3;
$L__BB5_10:
	.pragma "nounroll";
	add.s64 	%rd38, %rd22, %rd42;
	shr.s64 	%rd39, %rd38, 3;
	add.s64 	%rd40, %rd2, %rd39;
	ld.global.u8 	%r21, [%rd40];
	and.b32  	%r22, %r26, 7;
	mov.u32 	%r23, 1;
	shl.b32 	%r24, %r23, %r22;
	and.b32  	%r25, %r24, %r21;
	setp.ne.s32 	%p6, %r25, 0;
	@%p6 bra 	$L__BB5_12;
	st.global.v2.u64 	[%rd44], {%rd24, %rd25};
$L__BB5_12:
	add.s64 	%rd44, %rd44, %rd16;
	add.s32 	%r26, %r26, %r5;
	add.s64 	%rd42, %rd42, %rd5;
	setp.lt.s64 	%p7, %rd42, %rd21;
	@%p7 bra 	$L__BB5_10;
	bra.uni 	$L__BB5_13;
$L__BB5_2:
	shl.b64 	%rd31, %rd42, 4;
	add.s64 	%rd41, %rd1, %rd31;
	shl.b64 	%rd7, %rd5, 4;
	cvt.u32.u64 	%r9, %rd23;
$L__BB5_3:
	.pragma "nounroll";
	or.b64  	%rd32, %rd42, %rd23;
	and.b64  	%rd33, %rd32, -4294967296;
	setp.eq.s64 	%p3, %rd33, 0;
	@%p3 bra 	$L__BB5_5;
	div.s64 	%rd43, %rd42, %rd23;
	bra.uni 	$L__BB5_6;
$L__BB5_5:
	cvt.u32.u64 	%r10, %rd42;
	div.u32 	%r11, %r10, %r9;
	cvt.u64.u32 	%rd43, %r11;
$L__BB5_6:
	add.s64 	%rd34, %rd43, %rd22;
	shr.s64 	%rd35, %rd34, 3;
	add.s64 	%rd36, %rd2, %rd35;
	ld.global.u8 	%r12, [%rd36];
	cvt.u32.u64 	%r13, %rd34;
	and.b32  	%r14, %r13, 7;
	mov.u32 	%r15, 1;
	shl.b32 	%r16, %r15, %r14;
	and.b32  	%r17, %r16, %r12;
	setp.ne.s32 	%p4, %r17, 0;
	@%p4 bra 	$L__BB5_8;
	st.global.v2.u64 	[%rd41], {%rd24, %rd25};
$L__BB5_8:
	add.s64 	%rd41, %rd41, %rd7;
	add.s64 	%rd42, %rd42, %rd5;
	setp.lt.s64 	%p5, %rd42, %rd21;
	@%p5 bra 	$L__BB5_3;
$L__BB5_13:
	ret;
}
)ptx";
// clang-format on

}  // namespace arrowdl
